"""Standard names in test ids, so that `pytest -k rope` or `-k gqa` finds every test of the thing."""


def encoding_id(value):
    """The id of an encoding's name; None, which leaves the choice to pytest, for anything but a text."""
    return value.replace("rotary", "rotary-rope") if isinstance(value, str) else None
