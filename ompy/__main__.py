"""`python -m ompy` is `ompy`, of that Python."""

from ompy.cli.ompy import main

if __name__ == "__main__":
    main()
