#include "actors/processes/answer_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <exception>
#include <list>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "actors/net/socket.hpp"
#include "core/log.hpp"
#include "core/no_signals.hpp"

namespace troupe {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostClients = 32;      // at one time; the longest silent one makes room
constexpr std::chrono::seconds kPatience{2};  // with a client that does not send, or does not read
// Without descriptors or memory for one more, which stays in the backlog.
constexpr std::chrono::milliseconds kLookAgain{100};

// One who asks.
struct Client {
  int socket = -1;
  Clock::time_point until;
  std::string question;  // so far
  bool asked = false;    // the line is whole
  std::string answer;    // not yet sent
};

}  // namespace

struct AnswerServer::State {
  State(Descriptor socket, Options all) : listening(std::move(socket)), options(std::move(all)) {}
  ~State() {
    if (thread.joinable()) {
      const std::uint64_t one = 1;
      (void)!::write(woken.get(), &one, sizeof one);
      thread.join();
    }
    for (const Client& each : clients) close(each.socket);
  }

  void serve();
  void accept_one();
  bool move(Client& client, short events);  // false: it is over
  std::string answer_to(const std::string& question) const;
  void answer_all();

  const Descriptor listening;
  const Options options;
  const Descriptor woken{eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
  std::list<Client> clients;        // the oldest first
  Clock::time_point accept_from{};  // else looking would only spin
  std::thread thread;
};

void AnswerServer::State::accept_one() {
  const int socket = accept4(listening.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (socket < 0) {
    const bool gone = errno == EAGAIN || errno == ECONNABORTED || errno == EINTR;
    if (!gone) accept_from = Clock::now() + kLookAgain;
    return;
  }
  if (clients.size() >= kMostClients) {
    const auto silent = std::find_if(clients.begin(), clients.end(),
                                     [](const Client& each) { return !each.asked; });
    const auto oldest = silent == clients.end() ? clients.begin() : silent;
    close(oldest->socket);
    clients.erase(oldest);
  }
  clients.push_back({socket, Clock::now() + kPatience, {}, false, {}});
}

bool AnswerServer::State::move(Client& client, short events) {
  if (!client.asked) {
    if (!(events & (POLLIN | POLLHUP | POLLERR))) return true;
    char bytes[4096];
    const ssize_t n = recv(client.socket, bytes, sizeof bytes, 0);
    if (n <= 0) return n < 0 && (errno == EAGAIN || errno == EINTR);
    client.question.append(bytes, std::size_t(n));
    const std::size_t end = options.whole(client.question);
    if (end != std::string_view::npos) {
      client.question.resize(end);
      client.asked = true;
    } else if (client.question.size() > options.most_question) {
      return false;
    }
    return true;
  }
  if (client.answer.empty()) return false;  // there was nothing to say
  if (!(events & (POLLOUT | POLLHUP | POLLERR))) return true;
  const ssize_t n = send(client.socket, client.answer.data(), client.answer.size(), MSG_NOSIGNAL);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  client.answer.erase(0, std::size_t(n));
  return !client.answer.empty();
}

// What it throws, such as for lack of memory, ends the connections of those who asked, and not the
// process, which has other things to do.
std::string AnswerServer::State::answer_to(const std::string& question) const try {
  return options.answer(question);
} catch (const std::exception& error) {
  TROUPE_LOG(warning, "answer_server", fmt::format("no answer: {}", error.what()));
  return {};
}

// Those who have asked the same by now get the same.
void AnswerServer::State::answer_all() {
  std::map<std::string, std::string> known;
  for (Client& client : clients) {
    if (!client.asked || !client.answer.empty()) continue;
    auto [at, first] = known.try_emplace(client.question);
    if (first) at->second = answer_to(client.question);
    client.answer = at->second;
    client.until = Clock::now() + kPatience;
  }
}

void AnswerServer::State::serve() {
  for (;;) {
    const bool accepts = Clock::now() >= accept_from;
    std::vector<pollfd> wanted = {{woken.get(), POLLIN, 0},
                                  {listening.get(), short(accepts ? POLLIN : 0), 0}};
    Clock::time_point until = accepts ? Clock::now() + std::chrono::hours(1) : accept_from;
    for (const Client& each : clients) {
      wanted.push_back({each.socket, short(each.asked ? POLLOUT : POLLIN), 0});
      until = std::min(until, each.until);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now()).count();
    if (poll(wanted.data(), nfds_t(wanted.size()), int(std::max<std::int64_t>(left, 0))) < 0 &&
        errno != EINTR)
      return;
    if (wanted[0].revents != 0) return;
    const Clock::time_point now = Clock::now();
    std::size_t at = 2;
    for (auto each = clients.begin(); each != clients.end(); ++at) {
      if (move(*each, wanted[at].revents) && each->until > now) {
        ++each;
        continue;
      }
      close(each->socket);
      each = clients.erase(each);
    }
    if (wanted[1].revents != 0) accept_one();
    answer_all();
  }
}

AnswerServer::AnswerServer(std::unique_ptr<State> state) : state_(std::move(state)) {}
AnswerServer::~AnswerServer() = default;

Expected<std::unique_ptr<AnswerServer>> AnswerServer::start(Descriptor listening, Options options) {
  auto state = std::make_unique<State>(std::move(listening), std::move(options));
  if (!state->woken) return resource_exhausted(fmt::format("no eventfd: {}", std::strerror(errno)));
  try {
    const NoSignals none;
    state->thread = std::thread([state = state.get()] { state->serve(); });
  } catch (const std::system_error& error) {
    return resource_exhausted(fmt::format("no thread: {}", error.what()));
  }
  return std::unique_ptr<AnswerServer>(new AnswerServer(std::move(state)));
}

Expected<std::unique_ptr<AnswerServer>> AnswerServer::start(Endpoint& at, Options options) {
  const auto found = resolve(at);
  if (!found.ok()) return unavailable(found.status().message());
  TROUPE_TRY(Descriptor listening, listen_on(found->front()));
  at.port = local_address(listening.get()).port();
  return start(std::move(listening), std::move(options));
}

}  // namespace troupe
