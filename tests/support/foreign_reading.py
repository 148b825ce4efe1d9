"""Reads foreign texts with a small snapshot of our own."""

from __future__ import annotations

from pathlib import Path

from launcher.load import foreign
from launcher.model.launch import Launch
from launcher.model.profile import Model
from launcher.model.snapshot import Option, Snapshot

SWITCH = Option(switch=True)
OPTIONS = {
    "tensor-parallel-size": Option(short="-tp"),
    "data-parallel-size": Option(short="-dp"),
    "data-parallel-size-local": Option(short="-dpl"),
    "enable-expert-parallel": Option(switch=True, short="-ep"),
    "enable-eplb": SWITCH,
    "enable-prefix-caching": SWITCH,
    "trust-remote-code": SWITCH,
    "headless": SWITCH,
    "port": Option(),
    "max-num-seqs": Option(),
    "served-model-name": Option(words="+"),
    "optimization-level": Option(),
    "compilation-config": Option(short="-cc"),
    "eplb-config": Option(),
    "kv-transfer-config": Option(),
}
V32 = Model("deepseek-v3.2", "", "deepseek-v3.2", "DeepSeek-V3.2", known_as=("DeepSeek-V3.2-Exp",))
GIVEN = foreign.Given(snapshots={"0.33.0": Snapshot("0.33.0", OPTIONS)}, models=(V32,))

SCRIPT = r"""#!/bin/bash
export A=${A:-1}
ARGS=(-tp 2 # it's two
  -ep)
if [ "$A" = 1 ]; then ARGS+=(--headless); else echo no; fi
for i in 0 1; do
  run() { vllm serve /m --port $((8000 + $1)) "${ARGS[@]}" --eplb-config '{"window_size": '$i'}' & }
  run $i
done
ssh gpu02 "X=2 vllm serve $M \
  --port 1"
docker run -e B=c vllm/vllm-openai:v0.14.1 --model m <<EOF
$A `x` $(y)
EOF
"""

UNIT = r"""[Unit]
Description=Decode
[Service]
# limits
LimitMEMLOCK=infinity
Restart=no
Restart=on-failure
Environment=A=1 "B=2 3"
Environment='C={"x": 1}'
EnvironmentFile=-/etc/vllm.env
ExecStartPre=/bin/echo vllm serve x
ExecStart=/opt/bin/vllm serve /m/DeepSeek-V3.2 \
    --port ${PORT} -tp $TP \
    # a comment within
    --eplb-config '{"window_size": 10}' \
    --served-model-name "it's %H"
[Install]
WantedBy=multi-user.target
"""

COMPOSE = """
x-shared: &shared
  image: vllm/vllm-openai:v0.25.1
  environment: {A: "1", HOST:}
services:
  prefill-a:
    <<: *shared
    command: >
      --model deepseek-ai/DeepSeek-V3.2
      --port ${PORT:-8000}
      --kv-transfer-config '{"kv_role": "kv_both"}'
  decode-a:
    <<: *shared
    environment: [A=2, $$B=c, "E=$${A}"]
    env_file: [x.env]
    entrypoint: ["/bin/sh", "-c"]
    command:
      - |
        export F=$$A
        vllm serve m --port $PORT \\
          --max-num-seqs $$A
  other: {image: "haproxy:3"}
"""

KUBERNETES = """
apiVersion: v1
kind: Service
metadata: {name: x}
---
apiVersion: leaderworkerset.x-k8s.io/v1
kind: LeaderWorkerSet
metadata: {name: big}
spec:
  leaderWorkerTemplate:
    size: 2
    leaderTemplate: &template
      metadata: {labels: {role: decode}}
      spec:
        containers:
          - name: vllm
            image: vllm/vllm-openai:v0.33.0
            command: [/bin/bash, -c]
            args:
              - |
                exec vllm serve deepseek-ai/DeepSeek-V3.2 \\
                  -dp $(( LWS_GROUP_SIZE * 8 )) -dpl 8 --port $(PORT) \\
                  --data-parallel-start-rank $(( LWS_WORKER_INDEX * 8 )) \\
                  --kv-transfer-config '{"kv_role": "kv_both"}'
            env:
              - {name: PORT, value: "8200"}
              - name: VLLM_NIXL_SIDE_CHANNEL_HOST
                valueFrom: {fieldRef: {fieldPath: status.podIP}}
    workerTemplate: *template
---
apiVersion: example.org/v1
kind: Anything
metadata: {name: any}
spec:
  parts:
    - name: prefill
      pod:
        containers:
          - image: vllm/vllm-openai:v0.14.1@sha256:00
            args: ["--model", "m", "--kv-transfer-config", '{"kv_role": "kv_both"}']
            envFrom: [{configMapRef: {name: c}}]
"""


def read(text: str, name: str = "f.sh", *, beside: Path | None = None) -> foreign.Reading:
    return foreign.read_text(text, name, given=GIVEN, beside=beside)


def one(text: str, name: str = "f.sh", *, beside: Path | None = None) -> Launch:
    """The only launch of a text that has no Problem."""
    reading = read(text, name, beside=beside)
    assert reading.problems == ()
    (launch,) = reading.launches
    return launch


def flags(launch: Launch) -> dict[str, object]:
    return {name: setting.value for name, setting in launch.flags.items()}


def variables(launch: Launch) -> dict[str, object]:
    return {name: setting.value for name, setting in launch.variables.items()}
