"""Derives the tables in data/families from the transformers library: `python -m tools.derive`, on every upgrade of it.

No model type is described by hand. A tiny model is built many times with sizes that are independent of each other, and
the simplest expression that gives the observed shapes is kept, if it also holds for new random configs and for the
defaults at full size:

    library    the model types of transformers, their fields and classes
    words      what people know: symbols of fields, roles of tensors, and a few hints per type
    sampling   random configs
    probing    which fields have an effect
    fitting    the simplest expression of some sizes, and the simplest condition on some fields
    deriving   the rows of a table: tensors, sizes, lists of layers
    attention  what one forward pass shows: heads, scale, mask, norms, rotary positions
    writing    a table as text
    reading    what a table says of a config, by the app's reader
    checking   a table against new random configs
"""
