// Answers with a trained network that it knows from files alone: serve DIR takes model.graph, in
// which placeholder `input` [n,...] becomes `output` [n,...], and model.safetensors, its weights
// (apps/examples/export.cpp writes both), and takes them anew when they change.
//
//   serve DIR [--port N] [--batch N] [--wait MS] [--threads N]
//
// Whoever connects to the port of this machine (default: a free one, which it prints) sends lines
// of numbers, one row of the input each, and gets a line for each, in order: a row of the output,
// or `error` and why. Rows of several connections are computed together: at most --batch at once,
// and no row waits for others for more than --wait milliseconds. SIGTERM ends it.
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <charconv>
#include <exception>
#include <filesystem>
#include <memory>
#include <thread>

#include "first_step.hpp"
using namespace troupe;
using namespace std::chrono_literals;

constexpr std::int64_t kMostNumbers = 1'000'000;  // of a row
constexpr std::int64_t kDay = 86'400'000;         // in milliseconds

struct Model {
  Model(const std::string& folder, const Cluster& cluster)
      : session(value_or_throw(read_graph(folder + "/model.graph")), cluster) {
    session.restore(folder + "/model.safetensors");
    const Output input = session.graph().output("input"), output = session.graph().output("output");
    if (input.dtype() != DType::f32 || output.dtype() != DType::f32 || input.shape().known(0))
      throw Error(invalid_argument("input and output are f32 [n,...], for any n"));
    step = session.compile({output}, {}, {input});
    PartialShape shape = input.shape();
    shape.set_dim(0, 1);
    row = value_or_throw(Shape::make(shape.shape().dims()));
    if (row.elements() > kMostNumbers)
      throw Error(invalid_argument(fmt::format("a row has more than {} numbers", kMostNumbers)));
  }
  Session session;
  CompiledStep step;
  Shape row;  // [1,...]
};

// Serves what is in the files of a folder.
class Server {
 public:
  Server(std::string folder, Cluster cluster, const BatchOptions& options)
      : folder_(std::move(folder)),
        cluster_(std::move(cluster)),
        seen_(changed()),
        model_(std::make_shared<const Model>(folder_, cluster_)),
        batcher_(runs(model_), options) {}

  // Takes the files anew if they have changed. Nobody loses an answer by files that are not good.
  void look() {
    const Times now = changed();
    if (now == seen_) return;
    seen_ = now;
    try {
      const auto model = std::make_shared<const Model>(folder_, cluster_);
      model_ = model;
      batcher_.use(runs(model));
      print("took the model anew\n");
    } catch (const Error& error) {
      print("keeps the model that it has: {}\n", error.what());
    }
    std::fflush(stdout);
  }
  std::string answer(std::string_view line) {
    const Shape row = model_.load()->row;
    std::vector<float> numbers;
    for (std::size_t at; (at = line.find_first_not_of(" \r\n")) != line.npos;) {
      line.remove_prefix(at);
      const char* last = line.data() + line.size();
      const auto [end, error] = std::from_chars(line.data(), last, numbers.emplace_back());
      if (error != std::errc() ||
          (end != last && std::string_view(" \r\n").find(*end) == line.npos))
        return "error a row is numbers with spaces between them";
      line.remove_prefix(std::size_t(end - line.data()));
      if (std::int64_t(numbers.size()) > row.elements())
        return fmt::format("error more than {} numbers, which a row has", row.elements());
    }
    if (std::int64_t(numbers.size()) != row.elements())
      return fmt::format("error {} numbers, where a row has {}", numbers.size(), row.elements());
    const auto answer = batcher_.try_ask({Tensor::of<float>(row, numbers)});
    if (!answer.ok()) return "error " + answer.status().message();
    return fmt::format("{:.6g}", fmt::join((*answer)[0].span<float>(), " "));
  }
  // Bytes: no number needs more than 64.
  std::size_t longest_line() const {
    return 64 * std::size_t(model_.load()->row.elements()) + 4096;
  }
  Batcher::Counts counts() const { return batcher_.counts(); }

 private:
  using Times = std::array<std::filesystem::file_time_type, 2>;
  Times changed() const {
    std::error_code none;
    return {std::filesystem::last_write_time(folder_ + "/model.graph", none),
            std::filesystem::last_write_time(folder_ + "/model.safetensors", none)};
  }
  static Batcher::Run runs(const std::shared_ptr<const Model>& model) {
    return [model](std::vector<Tensor> feeds) { return model->step.try_run(std::move(feeds)); };
  }

  const std::string folder_;
  const Cluster cluster_;
  Times seen_;
  std::atomic<std::shared_ptr<const Model>> model_;
  Batcher batcher_;
};

bool send_all(int socket, std::string_view text) {
  return send(socket, text.data(), text.size(), MSG_NOSIGNAL) == ssize_t(text.size());
}

// Answers the lines of a connection, until it ends or sends one that is too long.
void talk(Server& server, int socket) {
  std::string read;  // what is not answered yet
  std::array<char, 1 << 16> part;
  for (ssize_t size; (size = recv(socket, part.data(), part.size(), 0)) > 0;) {
    std::size_t from = read.size(), begin = 0;
    read.append(part.data(), std::size_t(size));
    for (std::size_t end; (end = read.find('\n', from)) != read.npos; from = begin = end + 1) {
      const std::string_view line = std::string_view(read).substr(begin, end - begin);
      if (!send_all(socket, server.answer(line) + "\n")) return;
    }
    read.erase(0, begin);
    if (read.size() <= server.longest_line()) continue;
    send_all(socket, "error a line that is too long\n");
    return;
  }
}

// Accepts connections, each with a thread of its own. Those that there is no thread for are closed;
// those that there is no descriptor for wait until another one ends.
void accept_all(Server& server, int listener) {
  for (;;) {
    const int socket = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    if (socket < 0) {
      std::this_thread::sleep_for(10ms);
      continue;
    }
    try {
      std::thread([&server, socket] {
        try {
          talk(server, socket);
        } catch (const std::exception&) {  // no memory for what it sends
        }
        close(socket);
      }).detach();
      } catch (const std::exception&) {
      close(socket);
    }
  }
}

int main(int argc, char** argv) {
  const example::Arguments arguments(argc, argv);
  if (argc < 2 || argv[1][0] == '-') return print("serve DIR [--port N]\n"), 2;
  sigset_t ends;
  sigemptyset(&ends);
  sigaddset(&ends, SIGTERM), sigaddset(&ends, SIGINT);
  pthread_sigmask(SIG_BLOCK, &ends, nullptr);  // for all threads that are made from now on
  Server server(argv[1], Cluster::from_args(argc, argv),
                {.most = arguments.number("--batch", 32),
                 .wait = std::chrono::milliseconds(
                     std::min<std::int64_t>(arguments.number("--wait", 2), kDay))});
  const std::int64_t port = arguments.number("--port", 0);
  if (port > 65'535) return print("--port: a port is at most 65535, not {}\n", port), 2;

  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), yes = 1;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes);
  sockaddr_in address{.sin_family = AF_INET,
                      .sin_port = htons(std::uint16_t(port)),
                      .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t length = sizeof address;
  auto* name = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener, name, length) != 0 || listen(listener, 128) != 0 ||
      getsockname(listener, name, &length) != 0)
    return print("cannot listen at that port\n"), 1;
  print("listens at port {}\n", ntohs(address.sin_port));
  std::fflush(stdout);
  // Whoever is connected when the program ends loses the connection.
  std::thread([&] { accept_all(server, listener); }).detach();
  for (timespec pause{.tv_nsec = 100'000'000}; sigtimedwait(&ends, nullptr, &pause) < 0;)
    server.look();
  print("answered {} rows in {} batches\n", server.counts().rows, server.counts().batches);
  std::fflush(stdout);
  std::_Exit(0);  // nobody joins the threads of connections, which use the server
}
