"""The core: symbols, architectures, tensors, worksheets, answers and grading. It knows no request and no database."""
