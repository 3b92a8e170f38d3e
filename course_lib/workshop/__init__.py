"""What the maintainers run: the notebooks' normal form, the ledger, pictures, run times, benchmarks."""
