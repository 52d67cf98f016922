"""Every setting once: type, range, meaning, default; presets. Free of torch."""

from rarenode.config.presets import PRESETS
from rarenode.config.settings import WITHOUT_INFLUENCE, Settings, describe, setting_fields

__all__ = ["PRESETS", "WITHOUT_INFLUENCE", "Settings", "describe", "setting_fields"]
