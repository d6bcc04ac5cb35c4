"""All clients of a server at once. A process of its own, in the server's environment.

There are two ways to ask a model of an Open Inference Protocol (KServe V2) server.
"""

import http.client
import json

import numpy as np
import tritonclient.grpc

from benchmarks.harness.process import answer
from benchmarks.serving import answers as own
from benchmarks.serving.threads import ask_all

TIMEOUT = 120  # seconds


class RestClient:
    """Asks a model through REST, with plain JSON, over one connection.

    Args:
        host: name or address.
        port: number.
        model: name of the model.
        outputs: names of the outputs to ask for.
    """

    def __init__(self, host, port, model, outputs):
        self._connection = http.client.HTTPConnection(host, port, timeout=TIMEOUT)
        self._path = f"/v2/models/{model}/infer"
        self._outputs = [{"name": name} for name in outputs]

    def __call__(self, request):
        inputs = []
        for name, array in _arrays(request):
            data = array.ravel().tolist()
            inputs.append({"name": name, "shape": array.shape, "datatype": _type(array)})
            inputs[-1]["data"] = data
        body = json.dumps({"inputs": inputs, "outputs": self._outputs})
        try:
            self._connection.request("POST", self._path, body, {"Content-Type": "application/json"})
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException):
            self._connection.close()  # the next request makes a new one
            raise
        if response.status != 200:
            raise RuntimeError(f"status {response.status}: {content[:300]!r}")
        content = json.loads(content)
        answer = {
            output["name"]: np.array(output["data"], "float64").reshape(output["shape"])
            for output in content["outputs"]
        }
        return answer, int(content["parameters"]["batch_rows"])


class GrpcClient:
    """Asks a model through gRPC; the arguments are those of `RestClient`."""

    def __init__(self, host, port, model, outputs):
        self._client = tritonclient.grpc.InferenceServerClient(f"{host}:{port}")
        self._model = model
        self._outputs = [tritonclient.grpc.InferRequestedOutput(name) for name in outputs]

    def __call__(self, request):
        inputs = []
        for name, array in _arrays(request):
            inputs.append(tritonclient.grpc.InferInput(name, array.shape, _type(array)))
            inputs[-1].set_data_from_numpy(array)
        result = self._client.infer(
            self._model, inputs, outputs=self._outputs, client_timeout=TIMEOUT
        )
        response = result.get_response()
        answer = {output.name: result.as_numpy(output.name) for output in response.outputs}
        return answer, int(response.parameters["batch_rows"].int64_param)


CLIENTS = {"REST": RestClient, "gRPC": GrpcClient}


def _arrays(request):
    for name, value in request.items():
        yield name, np.array(value, np.object_ if isinstance(value[0], str) else np.int32)


def _type(array):
    return "BYTES" if array.dtype == np.object_ else "INT32"


def work(job, tick):
    """Asks all requests from many threads and compares every answer.

    Args:
        job: dictionary with `how` (a key of `CLIENTS`), `host`, `port`, `model`, `outputs`,
            `requests` and `answers` (files), `clients`, and `warm_up`, the number of requests
            that are asked before and compared, but not timed.
        tick: called after every `TICK` requests of `threads`.

    Returns:
        A row: `p50_ms`, `p99_ms`, `per_second`, `wrong`, `failed`, `largest_error`, `batches`
        (rows of a batch -> number of batches), `mean_batch`; `first_failure`, a sentence or `None`.
    """
    requests = own.read_requests(job["requests"])
    counts = [len(next(iter(request.values()))) for request in requests]
    expected = own.read_answers(job["answers"], counts)

    def connect():
        return CLIENTS[job["how"]](job["host"], job["port"], job["model"], job["outputs"])

    clients = job["clients"]
    warm = ask_all(requests[: job["warm_up"]], connect, clients, lambda: None)[0]
    outcomes, total = ask_all(requests, connect, clients, tick)
    return {
        "how": job["how"],
        "clients": clients,
        **own.times([seconds for _, seconds in outcomes], total),
        **own.compare(
            [outcome for outcome, _ in warm + outcomes], expected[: len(warm)] + expected
        ),
        **own.batches([outcome for outcome, _ in outcomes], counts),
    }


if __name__ == "__main__":
    answer(work)
