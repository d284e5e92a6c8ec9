"""Flows for people: as text, as SVG, and as HTML in notebooks."""
