#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <iterator>
#include <memory>

#include "apps/bench/peer_rounds.hpp"
#include "apps/bench/rows.hpp"
#include "apps/bench/torch_peer.hpp"
#include "apps/bench/train_networks.hpp"
#include "core/hash.hpp"
#include "devices/cuda/cuda_device.hpp"
#include "devices/cuda/diagnosis.hpp"
#include "ops/evaluate.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

// How much is measured.
struct Extent {
  std::int64_t tensor_bytes = std::int64_t{1} << 30;      // copied and added on the GPU
  std::int64_t transfer_bytes = std::int64_t{256} << 20;  // uploaded and downloaded
  std::int64_t bf16 = 8192, f32 = 4096;                   // rows and columns of matrices
  double seconds = 0.2;                                   // of a round
  int most_calls = 10'000;                                // of a round
  int first_steps = 20;                                   // that do not count
  bool small_networks = false;

  // As little as shows that every row can be measured.
  static Extent of_emulated() {
    return {std::int64_t{1} << 16, std::int64_t{1} << 16, 64, 64, 0, 4, 1, true};
  }
  // What `memory` bytes have room for.
  void fit(std::size_t memory) {
    while (tensor_bytes > std::int64_t(memory / 10)) tensor_bytes /= 2;
    while (transfer_bytes > std::int64_t(memory / 10)) transfer_bytes /= 2;
    while (bf16 * bf16 * 2 * 8 > std::int64_t(memory)) bf16 /= 2;
    while (f32 * f32 * 4 * 8 > std::int64_t(memory)) f32 /= 2;
  }
};

// What the GPU is, and what stands beside each row of it.
struct Gpu {
  Extent extent;
  std::string label;  // of an emulated one
  std::map<std::string, std::string> details;
};

// failed_precondition in the words of `troupe doctor` when there is nothing to measure.
Expected<Gpu> find_gpu() {
  const cuda::Diagnosis found = cuda::diagnose(cuda::Search::standard());
  Gpu gpu;
  for (const cuda::Finding& f : found.findings) {
    const bool needed = f.part == "driver" || f.part == "gpu:0" || f.part == "nvrtc";
    if (needed && f.state != "ready")
      return failed_precondition((f.part == "nvrtc" ? "NVRTC is " : "") + f.text);
    if (needed || f.part == "matmul") gpu.details[f.part] = f.text;
  }
  if (found.fake) gpu.extent = Extent::of_emulated(), gpu.label = "emulated, not a GPU";
  return gpu;
}

Status wait_for(Device& device, Ticket ticket) {
  std::promise<Status> done;
  device.on_complete(ticket, [&](Status status) { done.set_value(std::move(status)); });
  return done.get_future().get();
}

// Seconds of one call of `issue`: of as many as take `seconds`, from before the first is issued
// until the device's ticket of the last one is complete.
Expected<double> time_calls(const Extent& extent, Device& device,
                            FunctionRef<Expected<Ticket>()> issue) {
  const auto calls_take = [&](int calls) -> Expected<double> {
    const Clock::time_point begin = Clock::now();
    Ticket last;
    for (int i = 0; i < calls; ++i) {
      TROUPE_TRY(last, issue());
    }
    TROUPE_TRY(wait_for(device, last));
    return std::chrono::duration<double>(Clock::now() - begin).count() / calls;
  };
  TROUPE_TRY(const double one, calls_take(1));
  return calls_take(int(std::clamp(extent.seconds / one, 1.0, double(extent.most_calls))));
}

// An op's kernel, with its inputs in memory of the GPU.
class GpuCall {
 public:
  static Expected<GpuCall> make(CudaDevice& device, const std::string& op,
                                std::vector<Tensor> inputs, const AttrMap& attrs = {}) {
    const OpTable& table = ops::builtin();
    GraphBuilder g(table.ops);
    std::vector<Output> ports;
    for (const Tensor& t : inputs)
      ports.push_back(g.add("Placeholder", {}, {{"T", t.dtype()}, {"shape", PartialShape()}}));
    TROUPE_TRY(const Op node, g.try_add({.op = op, .inputs = ports, .attrs = attrs}));
    TROUPE_TRY(const OpInfo* info, table.ops.lookup(op));
    TROUPE_TRY(auto kernel, table.kernels.make(g.node(node.node()), *info, "CUDA"));
    Kernel* const kernels[] = {kernel.get()};
    TROUPE_TRY(device.prepare(kernels));
    return GpuCall(device, std::move(kernel), std::move(inputs));
  }
  // Issues it. What it computes is let go when the GPU is done with it.
  Expected<Tensor> run() {
    InlineLanes lanes;
    const KernelPlace place{.device = device_, .lanes = &lanes};
    TROUPE_TRY(auto outputs, call_with(*kernel_, inputs_, 1, place, false));
    return outputs[0];
  }
  Expected<Ticket> issue() {
    TROUPE_TRY(run().status());
    return device_->stream().mark();
  }

 private:
  GpuCall(CudaDevice& device, std::unique_ptr<Kernel> kernel, std::vector<Tensor> inputs)
      : device_(&device), kernel_(std::move(kernel)), inputs_(std::move(inputs)) {}

  CudaDevice* device_;
  std::unique_ptr<Kernel> kernel_;
  std::vector<Tensor> inputs_;
};

// Rows of the device alone, without a session.
class DeviceRows {
 public:
  // `torch`: beside which products stand, or null.
  DeviceRows(CudaDevice& device, Gpu gpu, const BenchOptions& options, const TorchPeer* torch)
      : device_(device), gpu_(std::move(gpu)), options_(options), torch_(torch) {
    gpu_.extent.fit(device.memory_size());
  }

  Expected<std::vector<BenchRow>> all() {
    TROUPE_TRY(memory_rows());
    TROUPE_TRY(product("gpu.matmul.bf16", DType::bf16, gpu_.extent.bf16));
    TROUPE_TRY(product("gpu.matmul.f32", DType::f32, gpu_.extent.f32));
    TROUPE_TRY(transfers());
    TROUPE_TRY(launches());
    return std::move(rows_);
  }

 private:
  bool any_wanted(std::initializer_list<const char*> names) const {
    return std::any_of(names.begin(), names.end(),
                       [&](const char* name) { return wanted(options_, name); });
  }

  // A row of `figure` of the seconds of a call.
  Status add(const std::string& name, const std::string& unit, const std::string& size,
             FunctionRef<double(double)> figure, FunctionRef<Expected<Ticket>()> issue,
             PeerRounds peers = {}) {
    if (!wanted(options_, name)) return ok_status();
    std::vector<double> rounds;
    TROUPE_TRY(time_calls(gpu_.extent, device_, issue).status());  // does not count
    for (int i = 0; i < options_.rounds; ++i) {
      TROUPE_TRY(const double seconds, time_calls(gpu_.extent, device_, issue));
      rounds.push_back(figure(seconds));
      TROUPE_TRY(peers.take(gpu_.extent.seconds));
    }
    BenchRow row{name, 0, unit};
    row.label = gpu_.label;
    row.details = gpu_.details;
    row.details["size"] = size;
    peers.compare(row, rounds, [&](const PeerScript::Round& round, double calls) {
      return figure(1e-3 * round.ms / calls);
    });
    rows_.push_back(std::move(row));
    return ok_status();
  }
  Status add_bandwidth(const std::string& name, std::int64_t bytes, double times,
                       FunctionRef<Expected<Ticket>()> issue) {
    return add(
        name, "GB/s", fmt::format("{} bytes", bytes),
        [&](double seconds) { return double(bytes) * times / seconds / 1e9; }, issue);
  }

  // Numbers without a pattern, of [-1, 1): zeros would make a GPU faster than it is.
  Expected<Tensor> numbers(const Shape& shape, std::uint64_t seed) {
    TROUPE_TRY(Tensor here, Tensor::make(DType::f32, shape, device_.host_allocator()));
    Random random(seed);
    float* values = here.mutable_data<float>();
    for (std::int64_t i = 0; i < here.elements(); ++i) values[i] = float(random.uniform(-1, 1));
    TROUPE_TRY(Tensor there, Tensor::make(DType::f32, shape, device_.allocator()));
    TROUPE_TRY(wait_for(device_, device_.copy(here, there)));
    return there;
  }

  // gpu.copy, gpu.add and gpu.chain: what moves memory, beside what copies it.
  Status memory_rows() {
    if (!any_wanted({"gpu.copy", "gpu.add", "gpu.chain"})) return ok_status();
    const std::int64_t bytes = gpu_.extent.tensor_bytes;
    const Shape shape{bytes / 4};
    TROUPE_TRY(const Tensor a, numbers(shape, 1));
    TROUPE_TRY(const Tensor b, Tensor::make(DType::f32, shape, device_.allocator()));
    TROUPE_TRY(wait_for(device_, device_.copy(a, b)));
    TROUPE_TRY(add_bandwidth("gpu.copy", bytes, 2,
                             [&]() -> Expected<Ticket> { return device_.copy(a, b); }));
    TROUPE_TRY(GpuCall sum, GpuCall::make(device_, "Add", {a, b}));
    TROUPE_TRY(add_bandwidth("gpu.add", bytes, 3, [&] { return sum.issue(); }));
    // relu(a * b + a) of three kernels.
    TROUPE_TRY(GpuCall first, GpuCall::make(device_, "Mul", {a, b}));
    TROUPE_TRY(const Tensor c, first.run());
    TROUPE_TRY(GpuCall second, GpuCall::make(device_, "Add", {c, a}));
    TROUPE_TRY(GpuCall third, GpuCall::make(device_, "Relu", {c}));
    TROUPE_TRY(add_bandwidth("gpu.chain", bytes, 8, [&]() -> Expected<Ticket> {
      TROUPE_TRY(first.run().status());
      TROUPE_TRY(second.run().status());
      return third.issue();
    }));
    const auto copy = std::find_if(rows_.begin(), rows_.end(),
                                   [](const BenchRow& row) { return row.name == "gpu.copy"; });
    if (copy == rows_.end()) return ok_status();
    for (BenchRow& row : rows_) {
      if (row.name == "gpu.copy") continue;
      row.peer = "gpu.copy";
      row.peer_value = copy->value;
      row.ratio = row.value / copy->value;
    }
    return ok_status();
  }

  Status product(const std::string& name, DType dtype, std::int64_t n) {
    if (!wanted(options_, name)) return ok_status();
    std::vector<Tensor> inputs;
    for (const std::uint64_t seed : {2, 3}) {
      TROUPE_TRY(Tensor matrix, numbers(Shape{n, n}, seed));
      if (dtype != DType::f32) {
        TROUPE_TRY(GpuCall cast, GpuCall::make(device_, "Cast", {matrix}, {{"to", dtype}}));
        TROUPE_TRY(matrix, cast.run());
      }
      inputs.push_back(std::move(matrix));
    }
    TROUPE_TRY(GpuCall call, GpuCall::make(device_, "MatMul", std::move(inputs)));
    PeerRounds peers;
    if (torch_) {
      TROUPE_TRY(PeerStep theirs, torch_->gpu_step(fmt::format("{}.{}", name.substr(4), n)));
      std::vector<PeerStep> steps;
      steps.push_back(std::move(theirs));
      peers = PeerRounds(std::move(steps));
    }
    const double flop = 2.0 * double(n) * double(n) * double(n);
    return add(
        name, "TFLOP/s", fmt::format("{0} x {0} x {0}", n),
        [&](double seconds) { return flop / seconds / 1e12; }, [&] { return call.issue(); },
        std::move(peers));
  }

  Status transfers() {
    if (!any_wanted({"gpu.upload", "gpu.download"})) return ok_status();
    const std::int64_t bytes = gpu_.extent.transfer_bytes;
    const Shape shape{bytes / 4};
    TROUPE_TRY(const Tensor there, numbers(shape, 4));
    TROUPE_TRY(const Tensor here, Tensor::make(DType::f32, shape, device_.host_allocator()));
    TROUPE_TRY(wait_for(device_, device_.copy(there, here)));
    TROUPE_TRY(add_bandwidth("gpu.upload", bytes, 1,
                             [&]() -> Expected<Ticket> { return device_.copy(here, there); }));
    return add_bandwidth("gpu.download", bytes, 1,
                         [&]() -> Expected<Ticket> { return device_.copy(there, here); });
  }

  // Of the least kernel: one after the other, and each waited for.
  Status launches() {
    if (!any_wanted({"gpu.launch", "gpu.launch_and_wait"})) return ok_status();
    TROUPE_TRY(const Tensor one, numbers(Shape{1}, 5));
    TROUPE_TRY(GpuCall call, GpuCall::make(device_, "Neg", {one}));
    const auto microseconds = [](double seconds) { return 1e6 * seconds; };
    TROUPE_TRY(add("gpu.launch", "us", "1 element", microseconds, [&] { return call.issue(); }));
    return add("gpu.launch_and_wait", "us", "1 element", microseconds, [&]() -> Expected<Ticket> {
      TROUPE_TRY(const Ticket ticket, call.issue());
      TROUPE_TRY(wait_for(device_, ticket));
      return ticket;
    });
  }

  CudaDevice& device_;
  Gpu gpu_;
  const BenchOptions& options_;
  const TorchPeer* torch_;
  std::vector<BenchRow> rows_;
};

Cluster with_gpu(const BenchOptions& options) {
  Cluster cluster = options.cluster;
  cluster.devices = {"CPU", "CUDA"};
  return cluster;
}

RoundLength length_of(const Extent& extent) {
  return {.seconds = extent.seconds, .first = extent.first_steps};
}

// A step of a session that computes a scalar on the GPU, and fetches it.
Expected<BenchRow> least_step(const Gpu& gpu, const BenchOptions& options) {
  Graph graph;
  const Variable x = variable(graph, "x", Tensor::scalar(1.0f));
  Session session(graph, with_gpu(options));
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(CompiledStep step, session.try_compile({x.value() + 1.0f}, {}));
  PeerRounds nobody;
  TROUPE_TRY(BenchRow row, time_in_turns("gpu.step", options.rounds, length_of(gpu.extent), nobody,
                                         [&] { return step.try_run().status(); }));
  TROUPE_TRY(session.try_close());
  row.value *= 1e3;
  row.unit = "us";
  row.details = {{"rounds in ms", row.details["rounds"]}};
  return row;
}

Expected<BenchRow> training_step(const TrainNetwork& network, const Gpu& gpu,
                                 const BenchOptions& options, PeerRounds peers) {
  TROUPE_TRY(auto made, make_train_step(network, gpu.extent.small_networks));
  Session session(made->graph, with_gpu(options));
  TROUPE_TRY(session.try_init());
  TROUPE_TRY(CompiledStep step,
             session.try_compile({made->loss}, {made->train}, {made->x, made->y}));
  TROUPE_TRY(BenchRow row,
             time_in_turns("gpu.train." + network.name, options.rounds, length_of(gpu.extent),
                           peers, [&] { return step.try_run(made->feeds).status(); }));
  TROUPE_TRY(session.try_close());
  row.details["size"] = made->feeds[0].shape().text();
  return row;
}

Expected<std::vector<BenchRow>> session_rows(const Gpu& gpu, const BenchOptions& options,
                                             const std::vector<TorchPeer>& torch) {
  std::vector<BenchRow> rows;
  if (wanted(options, "gpu.step")) {
    TROUPE_TRY(BenchRow row, least_step(gpu, options));
    rows.push_back(std::move(row));
  }
  for (const TrainNetwork& network : train_networks()) {
    if (!network.of_peers || !wanted(options, "gpu.train." + network.name)) continue;
    std::vector<PeerStep> steps;
    for (const TorchPeer& peer : torch) {
      TROUPE_TRY(PeerStep step, peer.gpu_step(network.name));
      steps.push_back(std::move(step));
    }
    TROUPE_TRY(BenchRow row, training_step(network, gpu, options, PeerRounds(std::move(steps))));
    rows.push_back(std::move(row));
  }
  for (BenchRow& row : rows) {
    row.label = gpu.label;
    row.details.insert(gpu.details.begin(), gpu.details.end());
  }
  return rows;
}

}  // namespace

Expected<std::vector<BenchRow>> bench_gpu(const BenchOptions& options) {
  TROUPE_TRY(const Gpu gpu, find_gpu());
  std::vector<TorchPeer> torch;
  if (options.beside("torch")) {
    TROUPE_TRY(torch, TorchPeer::find_gpu());
  }
  std::vector<BenchRow> rows;
  {
    // Its memory is given back before sessions take theirs.
    TROUPE_TRY(DeviceName name, DeviceName::parse("/job:bench/task:0/cuda:0"));
    TROUPE_TRY(auto device, make_cuda_device(name));
    TROUPE_TRY(rows, DeviceRows(*device, gpu, options, torch.empty() ? nullptr : &torch[0]).all());
  }
  TROUPE_TRY(auto of_sessions, session_rows(gpu, options, torch));
  std::move(of_sessions.begin(), of_sessions.end(), std::back_inserter(rows));
  return rows;
}

}  // namespace troupe
