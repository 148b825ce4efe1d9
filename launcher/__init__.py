"""dsv32-launch: turn bare H200 hosts into a DeepSeek-V3.2 inference service over SSH and systemd."""

__version__ = "0.1.0"
