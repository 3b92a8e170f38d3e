#!/bin/bash
# Train a translator on several machines of a Slurm cluster, or continue what the folder holds:
#     sbatch --nodes 2 --gpus-per-node 4 slurm.sh --data multi30k --steps 20000 --folder runs/en-de
# Two minutes before its time is over the job saves and ends; the same line continues it, and
# --array=1-5%1 before slurm.sh queues five such jobs, one after the other.
# The folder, and the Python environment that is active, must be on a file system that all machines
# share. --tokens counts the tokens of a batch over all processes. Without GPUs there is one process
# per machine.
#SBATCH --job-name=translator
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=8
#SBATCH --time=02:00:00
#SBATCH --signal=TERM@120
set -euo pipefail

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
processes=${SLURM_GPUS_ON_NODE:-1}
export OMP_NUM_THREADS=$((SLURM_CPUS_PER_TASK > processes ? SLURM_CPUS_PER_TASK / processes : 1))
srun python -m torch.distributed.run \
    --nnodes "$SLURM_NNODES" --nproc-per-node "$processes" --max-restarts 3 \
    --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$first:${MASTER_PORT:-29500}" \
    -m course_lib.train "$@" --resume
