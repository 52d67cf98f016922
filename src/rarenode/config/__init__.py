"""Every setting once: type, range, meaning, default; presets. Free of torch."""

from rarenode.config.settings import PRESETS, WITHOUT_INFLUENCE, Settings, describe, setting_fields

__all__ = ["PRESETS", "WITHOUT_INFLUENCE", "Settings", "describe", "setting_fields"]
