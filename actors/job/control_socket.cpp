#include "actors/job/control_socket.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "actors/job/job_folder.hpp"
#include "actors/job/json_text.hpp"
#include "actors/processes/answer_server.hpp"
#include "core/descriptor.hpp"
#include "core/log.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;

constexpr std::size_t kMostAnswer = 16 << 20;
constexpr std::size_t kMostFigures = 1000;  // names may be made of what changes

// The address of a file in a folder whose path may be longer than an address can be.
class SocketFile {
 public:
  static Expected<SocketFile> of(const std::string& path) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == path.npos ? "." : path.substr(0, slash + 1);
    SocketFile address;
    address.folder_ = Descriptor(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    if (!address.folder_)
      return not_found(fmt::format("cannot open '{}': {}", folder, std::strerror(errno)));
    const std::string text =
        fmt::format("/proc/self/fd/{}/{}", address.folder_.get(), path.substr(slash + 1));
    if (text.size() >= sizeof address.address_.sun_path)
      return invalid_argument("'" + path + "' is too long a name for a socket");
    address.address_.sun_family = AF_UNIX;
    std::memcpy(address.address_.sun_path, text.c_str(), text.size() + 1);
    return address;
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address_); }
  const char* path() const { return address_.sun_path; }
  static constexpr socklen_t kSize = sizeof(sockaddr_un);

 private:
  SocketFile() = default;
  Descriptor folder_;
  sockaddr_un address_{};
};

std::string line_of(const Json& json) { return json_text(json) + "\n"; }

}  // namespace

struct ControlSocket::State {
  ~State() {
    server.reset();
    if (!path.empty()) unlink(path.c_str());
  }
  Status listen(const std::string& folder);
  std::string document(std::string_view question);

  std::string path;
  std::mutex mutex;  // of what follows; never held while a session is asked
  std::map<std::uint64_t, std::shared_ptr<const Answer>> sessions;  // the oldest first
  std::uint64_t last_session = 0;
  std::map<std::string, std::string> notes;
  std::map<std::string, double> figures;
  std::unique_ptr<AnswerServer> server;
};

Status ControlSocket::State::listen(const std::string& folder) {
  const std::string name = fmt::format("{}/{}{}", folder, kPrefix, getpid());
  TROUPE_TRY(const SocketFile address, SocketFile::of(name));
  Descriptor listening(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto failed = [&] {
    return failed_precondition(fmt::format("cannot serve '{}': {}", name, std::strerror(errno)));
  };
  if (!listening) return failed();
  unlink(name.c_str());  // of an earlier process with this number
  if (bind(listening.get(), address.get(), SocketFile::kSize) != 0) return failed();
  path = name;
  if (chmod(name.c_str(), 0600) != 0 || ::listen(listening.get(), 64) != 0) return failed();
  AnswerServer::Options options;
  options.whole = [](std::string_view bytes) { return bytes.find('\n'); };
  options.answer = [this](std::string_view question) { return document(question); };
  TROUPE_TRY(server, AnswerServer::start(std::move(listening), std::move(options)));
  return ok_status();
}

std::string ControlSocket::State::document(std::string_view question) {
  if (question != kWaits && question != kStatus)
    return line_of({{"error", "ask for 'waits' or for 'status', in a line"}});
  std::vector<std::shared_ptr<const Answer>> all;
  Json notes_now = Json::object(), figures_now = Json::object();
  {
    std::lock_guard lock(mutex);
    for (const auto& [number, each] : sessions) all.push_back(each);
    for (const auto& [name, text] : notes) notes_now[name] = text;
    for (const auto& [name, value] : figures) figures_now[name] = value;
  }
  Json answers = Json::array();
  for (const auto& each : all) {
    Json said = (*each)(question);
    if (!said.is_null()) answers.push_back(std::move(said));
  }
  Json document = {{"process", getpid()}, {"sessions", std::move(answers)}};
  if (question == kStatus) {
    document["notes"] = std::move(notes_now);
    document["figures"] = std::move(figures_now);
  }
  std::string text = line_of(document);
  if (text.size() > kMostAnswer) return line_of({{"error", "there is more to say than fits"}});
  return text;
}

ControlSocket::ControlSocket(std::unique_ptr<State> state) : state_(std::move(state)) {}
ControlSocket::~ControlSocket() = default;

Expected<std::unique_ptr<ControlSocket>> ControlSocket::open(const std::string& folder) {
  auto state = std::make_unique<State>();
  TROUPE_TRY(state->listen(folder));
  return std::unique_ptr<ControlSocket>(new ControlSocket(std::move(state)));
}

ControlSocket* ControlSocket::of_this_process() {
  // Never destroyed: sessions may live as long as the process.
  static ControlSocket* const one = []() -> ControlSocket* {
    const std::string folder = JobFolder::of_this_process();
    if (folder.empty()) return nullptr;
    auto opened = open(folder);
    if (opened.ok()) return std::move(opened).value().release();
    TROUPE_LOG(warning, "job",
               "`troupe why-blocked` cannot ask this process: " + opened.status().message());
    return nullptr;
  }();
  return one;
}

std::uint64_t ControlSocket::add_session(Answer answer) {
  std::lock_guard lock(state_->mutex);
  const std::uint64_t number = ++state_->last_session;
  state_->sessions.emplace(number, std::make_shared<const Answer>(std::move(answer)));
  return number;
}

void ControlSocket::remove_session(std::uint64_t number) {
  std::shared_ptr<const Answer> last;  // destroyed when nothing is locked
  std::lock_guard lock(state_->mutex);
  const auto known = state_->sessions.find(number);
  if (known == state_->sessions.end()) return;
  last = std::move(known->second);
  state_->sessions.erase(known);
}

void ControlSocket::note(const std::string& name, const std::string& text) {
  std::lock_guard lock(state_->mutex);
  if (text.empty())
    state_->notes.erase(name);
  else
    state_->notes[name] = text;
}

void ControlSocket::figure(const std::string& name, double value) {
  std::lock_guard lock(state_->mutex);
  if (state_->figures.size() < kMostFigures || state_->figures.contains(name))
    state_->figures[name] = value;
}

// ------------------------------------------------------------------ who asks

bool is_served(const std::string& path) {
  const auto address = SocketFile::of(path);
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!address.ok() || !socket) return true;  // as far as is known
  if (connect(socket.get(), address->get(), SocketFile::kSize) == 0) return true;
  return errno != ECONNREFUSED && errno != ENOENT;
}

Expected<Json> ask_control_socket(const std::string& path, std::string_view question,
                                  int timeout_ms) {
  TROUPE_TRY(const SocketFile address, SocketFile::of(path));
  const Descriptor socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const auto until = Clock::now() + std::chrono::milliseconds(timeout_ms);
  const auto in_time = [&](short events) {
    pollfd wanted{socket.get(), events, 0};
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    return left > 0 && (poll(&wanted, 1, int(left)) > 0 || errno == EINTR);
  };
  const Status late = deadline_exceeded(
      fmt::format("it does not answer within {:.1f} s", double(timeout_ms) / 1e3));
  if (!socket) return resource_exhausted(std::strerror(errno));
  while (connect(socket.get(), address.get(), SocketFile::kSize) != 0) {
    if (errno != EAGAIN && errno != EINTR)
      return unavailable(fmt::format("nobody serves '{}': {}", path, std::strerror(errno)));
    // Its queue is full of others.
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (Clock::now() >= until) return late;
  }
  const std::string line = std::string(question) + "\n";
  if (send(socket.get(), line.data(), line.size(), MSG_NOSIGNAL) != ssize_t(line.size()))
    return unavailable(fmt::format("'{}' takes no question: {}", path, std::strerror(errno)));
  std::string text;
  for (;;) {
    if (!in_time(POLLIN)) return late;
    char bytes[1 << 16];
    const ssize_t n = recv(socket.get(), bytes, sizeof bytes, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (n <= 0) break;
    text.append(bytes, std::size_t(n));
    if (text.size() > kMostAnswer + 1) return data_loss("its answer does not end");
  }
  Json document = Json::parse(text, nullptr, false);
  if (!document.is_object())
    return text.empty() ? unavailable("it did not answer") : data_loss("its answer is no document");
  return document;
}

}  // namespace troupe
