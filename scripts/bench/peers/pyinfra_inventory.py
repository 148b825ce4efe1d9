"""pyinfra's inventory, from the fleet description that scripts/bench-engine writes."""

import json
import os

fleet = json.load(open(os.environ["BENCH_FLEET"]))
ssh = {
    "ssh_user": "root",
    "ssh_key": fleet["key"],
    "ssh_known_hosts_file": fleet["known_hosts"],
    "ssh_strict_host_key_checking": "yes",
    "ssh_look_for_keys": False,
    "ssh_allow_agent": False,
}
hosts = [(h["name"], {"ssh_hostname": h["address"], **ssh}) for h in fleet["hosts"]]
