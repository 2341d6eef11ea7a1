#!/bin/bash
# What a container runs: the command that it is given. On Kubernetes, Spark gives an executor's container the one
# word `executor`, and everything else in variables.
set -eu

if [ "${1:-}" != executor ]; then
  exec "$@"
fi

options=()
number=0
name=SPARK_JAVA_OPT_$number
while [ -n "${!name+given}" ]; do
  options+=("${!name}")
  number=$((number + 1))
  name=SPARK_JAVA_OPT_$number
done

exec java "${options[@]}" "-Xms$SPARK_EXECUTOR_MEMORY" "-Xmx$SPARK_EXECUTOR_MEMORY" \
  -cp "${SPARK_CONF_DIR:-$SPARK_HOME/conf}:$SPARK_HOME/jars/*" \
  org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend \
  --driver-url "$SPARK_DRIVER_URL" \
  --executor-id "$SPARK_EXECUTOR_ID" \
  --cores "$SPARK_EXECUTOR_CORES" \
  --app-id "$SPARK_APPLICATION_ID" \
  --hostname "$SPARK_EXECUTOR_POD_IP" \
  --resourceProfileId "$SPARK_RESOURCE_PROFILE_ID" \
  --podName "$SPARK_EXECUTOR_POD_NAME"
