# Runs the servers of a cluster in the current folder, and does what the lines of its standard input name, until that
# ends. It ends with the process of the tests, however that ends, so that no server and no folder outlives them.
tools=$1 etcd_port=$2 port=$3 disabled=$4 folder=$5
pids=

start_etcd() {
  "$tools/etcd" --data-dir data --unsafe-no-fsync --log-level warn \
    --listen-client-urls "http://127.0.0.1:$etcd_port" --advertise-client-urls "http://127.0.0.1:$etcd_port" \
    --listen-peer-urls http://127.0.0.1:0 > etcd.log 2>&1 &
  pids="$pids $!"
}

start_apiserver() {
  "$tools/kube-apiserver" --etcd-servers "http://127.0.0.1:$etcd_port" --bind-address 127.0.0.1 --secure-port "$port" \
    --cert-dir certificates --service-cluster-ip-range 10.0.0.0/16 --authorization-mode RBAC \
    --token-auth-file tokens.csv --service-account-issuer https://kubernetes.default.svc \
    --service-account-key-file certificates/apiserver.key \
    --service-account-signing-key-file certificates/apiserver.key \
    --disable-admission-plugins "$disabled" >> kube-apiserver.log 2>&1 &
  apiserver=$!
}

kill_apiserver() {
  kill -KILL "$apiserver"
  wait "$apiserver"
}

# Only when the API server answers: without one they end.
start_controllers() {
  "$tools/kube-controller-manager" --kubeconfig kubeconfig --leader-elect=false --secure-port 0 \
    --service-account-private-key-file certificates/apiserver.key --root-ca-file certificates/apiserver.crt \
    --kube-api-qps 200 --kube-api-burst 400 > kube-controller-manager.log 2>&1 &
  pids="$pids $!"
  "$tools/kube-scheduler" --kubeconfig kubeconfig --leader-elect=false --secure-port 0 > kube-scheduler.log 2>&1 &
  pids="$pids $!"
  "$tools/kwok" --kubeconfig kubeconfig --manage-all-nodes --config "$tools/kwok-stages.yaml" --cidr 10.1.0.0/16 \
    > kwok.log 2>&1 &
  pids="$pids $!"
}

while read -r order; do
  "$order"
done
kill -KILL $pids "$apiserver"
wait
cd / && rm -rf "$folder"
