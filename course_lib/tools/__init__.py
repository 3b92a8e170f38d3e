"""Tools for maintainers: normal form of the notebooks, verification ledger, pictures, run times, checkpoints, web pages."""
