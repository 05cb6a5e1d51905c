"""Start the TransformerLM Explorer: `python app.py`, then open the URL it prints."""

from explorer.cli import main

if __name__ == "__main__":
    main()
