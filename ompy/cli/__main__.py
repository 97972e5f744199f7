"""`python -m ompy.cli` is `ompy`."""

from ompy.cli.ompy import main

if __name__ == "__main__":
    main()
