"""The job's inputs, the same bytes for every tool: written into a folder, deterministic."""

from __future__ import annotations

import random
from pathlib import Path

UNIT = """[Unit]
Description=peer {i}
[Service]
ExecStart=/bin/sleep infinity
Restart=always
[Install]
WantedBy=multi-user.target
"""
TEMPLATE = """# config {i} of {{{{ host }}}}
[app{i}]
name = {{{{ host }}}}-{i}
listen = 127.0.0.1:{port}
{{% for k in range(20) %}}opt{{{{ k }}}} = {{{{ k * 3 }}}}
{{% endfor %}}"""
LOGROTATE = "/var/log/peer/*.log {\n  weekly\n  rotate 4\n  missingok\n}\n"


def write(templates: Path, files: Path, units: Path, *, host: str = "host", unit_suffix: str = "") -> None:
    """Ten templates, six binary files, one logrotate file, three units; `host` is the template's variable."""
    for folder in (templates, files, units):
        folder.mkdir(parents=True, exist_ok=True)
    noise = random.Random(7)
    for i in range(1, 6):
        (files / f"f{i}.bin").write_bytes(noise.randbytes(10_000))
    (files / "big.bin").write_bytes(noise.randbytes(1_000_000))
    (files / "peer.logrotate").write_text(LOGROTATE)
    for i in range(1, 11):
        text = TEMPLATE.format(i=i, port=9000 + i).replace("{{ host }}", "{{ " + host + " }}")
        (templates / f"app{i}.conf.j2").write_text(text)
    for i in range(1, 4):
        (units / f"peer{i}.service{unit_suffix}").write_text(UNIT.format(i=i))
