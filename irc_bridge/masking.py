"""Masks for secrets, which no message and no listing of settings may show."""

import re

MASK = "********"

_USER_INFO = re.compile(r"(?<=//)[^/?#\s]+(?=@)")


def without_user_info(text: str) -> str:
    """The text with a mask in place of the user name and the password of each URL in it."""
    return _USER_INFO.sub(MASK, text) if "@" in text else text
