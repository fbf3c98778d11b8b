"""The program of a head or layer, its memory, and the process that runs it in torch."""
