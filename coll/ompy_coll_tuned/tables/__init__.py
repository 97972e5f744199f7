"""Rules as data: measured within one host and over a network, and published ones for more ranks than were measured."""
