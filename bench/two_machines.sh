#!/bin/bash
# Two agents in two network namespaces, as on two machines: a cut of ten seconds must not change what they learn, and a
# cut for good must be reported. Needs root, iproute2 and openssl; takes about two minutes.
#
#   sudo PYTHON=.venv/bin/python bench/two_machines.sh

set -euo pipefail
cd "$(dirname "$0")/.."
python=${PYTHON:-python}
out=$(mktemp -d)
host=10.213.81.1
a=mmcorl$$a b=mmcorl$$b
export OMP_NUM_THREADS=1

finish() {
    kill $(jobs -p) 2> /dev/null || true
    ip netns del $a || true
    ip netns del $b || true
    rm -rf "$out"
}
trap finish EXIT

ip netns add $a
ip netns add $b
ip -n $a link add cable type veth peer name cable netns $b
ip -n $a addr add $host/24 dev cable
ip -n $b addr add 10.213.81.2/24 dev cable
for name in $a $b; do
    ip -n $name link set lo up
    ip -n $name link set cable up
done

(umask 077 && openssl rand -hex 32 > "$out/secret")
settings=(
    configs/quickstart.yaml data.train.scenes.size=96 data.eval=null evaluation.every=0 run.steps=40 run.threads=1
    rollouts.problems_per_step=8 rollouts.per_problem=4 checkpoints.every=10 optimizer.lr=1e-3
)

train() { # NAMESPACE AGENT RUNS
    ip netns exec "$1" "$python" -m mmcorl.cli.train "${settings[@]}" cohort.secret_file="$out/secret" \
        run.dir="$out/$3" --agent "$2" --store tcp://$host:29500
}

until_step() { # STEP RUNS
    until grep -qs "\"step\": $1," "$out/$2/pair/agents/qwen/metrics.jsonl"; do sleep 0.2; done
}

weights() { # RUNS
    (cd "$out/$1/pair/agents" && sha256sum ./*/checkpoints/step-000040/model.safetensors)
}

echo "== without a cut, one launcher"
"$python" -m mmcorl.cli.train "${settings[@]}" run.dir="$out/whole"

echo "== cut for ten seconds"
train $a qwen cut & train $b internvl cut &
until_step 5 cut
ip -n $b link set cable down
sleep 10
ip -n $b link set cable up
wait
[[ $(weights cut) == "$(weights whole)" ]] && echo "the weights are those without a cut"

echo "== cut for good"
train $a qwen lost & train $b internvl lost &
until_step 3 lost
ip -n $b link set cable down
cut=$SECONDS
wait
echo "both had ended $((SECONDS - cut)) s after the cut (cohort.dead_after is 20 s)"
