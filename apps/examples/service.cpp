// A service that forgets nothing it has answered, whatever part of it is killed:
//
//   troupe run -- service --socket PATH       keeps it running
//
// A CAF program that supervises its own actors and a child process. The child learns the sine; the
// service answers, over a Unix socket, a line for each line, in any order, each with the words that
// name its request (C: a client, 0 to 63; N: the number of its request, from 1, ascending):
//
//   add C N        C N COUNT       counts the request, once however often it is sent
//   predict C N X  C N Y           what was learned: Y is about sin(X)
//   crash C N                      an actor throws, which costs its clients their connection
//                  C N error TEXT  what became of any other
//
// A count is answered when a checkpoint has it, so the next life knows it, too. Whoever gets no
// answer sends the request again.
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <caf/actor_system_config.hpp>
#include <caf/event_based_actor.hpp>
#include <caf/send.hpp>
#include <caf/stateful_actor.hpp>
#include <charconv>
#include <cmath>
#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <thread>
#include <troupe/actors/client/session_actor.hpp>
#include <troupe/actors/supervision/supervisor_actor.hpp>
#include <troupe/troupe.hpp>

using namespace troupe;
using namespace std::chrono_literals;

constexpr std::int64_t kClients = 64;
constexpr std::size_t kLongest = 200;  // bytes of a line

// ---------------------------------------------------------------- graphs

struct Sine : nn::Module {
  using Module::Module;
  nn::Linear hidden{*this, "hidden", 1, 64}, out{*this, "out", 64, 1};
  Output operator()(Output x) const { return out(tanh(hidden(x))); }
};

// The child process: learns, writes FILE, and ends. Killed, it goes on where it was.
int learn(const std::string& file, int argc, char** argv) {
  if (std::filesystem::exists(file)) return 0;
  Graph g;
  Output x = random_uniform(g, {256, 1}, {.low = -3, .high = 3});
  Sine net{g.scope("sine")};
  Output loss = mean(square(net(x) - sin(x)));
  Op train = optim::Adam{.lr = 3e-3}.minimize(loss);
  Session session{g, {.threads = 1}};
  JobOptions options = JobOptions::from_args(argc, argv);
  options.dir = file + ".job";
  options.quiet = true;
  Job job{session, options};
  auto step = session.compile({loss}, {train});
  for (const JobStep& s : job.steps(3000)) step.run(s);
  if (!job.stopped()) session.save(file, net.parameters());
  return job.exit_code();
}

struct Service {
  Graph g;
  Output client = placeholder(g, DType::i64, Shape{});
  Output number = placeholder(g, DType::i64, Shape{});
  Output x = placeholder(g, DType::f32, Shape{});
  Variable count = variable(g, "count", Tensor::scalar(std::int64_t{0}));
  Variable last = variable(g, "last", Tensor::zeros(DType::i64, Shape{kClients}).value());
  Variable learned = variable(g, "learned", Tensor::scalar(false));
  Sine net{g.scope("sine")};
  // A request that was counted before is not counted again.
  Output fresh = cast(number > gather(last, client), DType::i64);
  Output counted = count + fresh;
  Op add = group(
      g, {assign_add(count, fresh),
          assign(last, maximum(last, one_hot(client, kClients, {.dtype = DType::i64}) * number))});
  Op learn = assign(learned, constant(g, true));
  Output predicted = net(reshape(x, {1, 1}));
  CompiledStep add_step, predict_step;
};

// ---------------------------------------------------------------- a connection, and the door

// Answers may come from any thread, after the other side has gone.
class Connection {
 public:
  explicit Connection(int socket) : socket_(socket) {}
  ~Connection() { close(socket_); }
  int socket() const { return socket_; }
  // What does not take its answers loses them, and the connection.
  void say(const std::string& line) const {
    const std::string text = line + "\n";
    if (send(socket_, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT) !=
        ssize_t(text.size()))
      shutdown(socket_, SHUT_RDWR);
  }

 private:
  const int socket_;
};

struct Line {
  std::shared_ptr<Connection> from;
  std::string text;
};
CAF_ALLOW_UNSAFE_MESSAGE_TYPE(Line)

// Takes connections and their lines, on a thread of its own.
class Door {
 public:
  Door(const std::string& path, caf::actor desk) : desk_(std::move(desk)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path)
      throw Error(invalid_argument("the path of the socket is too long: " + path));
    path.copy(address.sun_path, path.size());
    // What is no socket of an earlier life stays: a file, or a socket where somebody listens.
    listener_ = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED && std::filesystem::is_socket(path))
      unlink(path.c_str());
    if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
        listen(listener_, 64) != 0) {
      close(listener_);
      throw Error(failed_precondition("cannot listen at " + path));
    }
    thread_ = std::thread([this] { work(); });
  }
  ~Door() {
    eventfd_write(end_, 1);
    thread_.join();
    close(listener_);
    close(end_);
  }

 private:
  struct Guest {
    std::shared_ptr<Connection> connection;
    std::string text;  // not yet a line
  };
  void work() {
    std::vector<Guest> guests;
    bool full = false;  // there is no descriptor for another one
    for (;;) {
      std::vector<pollfd> all{{end_, POLLIN, 0}, {full ? -1 : listener_, POLLIN, 0}};
      for (const Guest& guest : guests) all.push_back({guest.connection->socket(), POLLIN, 0});
      if (poll(all.data(), all.size(), full ? 100 : -1) < 0) continue;
      full = false;
      if (all[0].revents != 0) break;
      for (std::size_t i = guests.size(); i-- > 0;)
        if (all[i + 2].revents != 0 && !read(guests[i])) guests.erase(guests.begin() + long(i));
      if (all[1].revents == 0) continue;
      if (const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC); fd >= 0)
        guests.push_back({std::make_shared<Connection>(fd), ""});
      else
        full = errno == EMFILE || errno == ENFILE;
    }
    for (const Guest& guest : guests) shutdown(guest.connection->socket(), SHUT_RDWR);
  }
  // False: it has gone, or is no client of ours.
  bool read(Guest& guest) const {
    char bytes[4096];
    const ssize_t got = recv(guest.connection->socket(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got <= 0) return got < 0 && (errno == EAGAIN || errno == EINTR);
    guest.text.append(bytes, std::size_t(got));
    for (std::size_t end; (end = guest.text.find('\n')) != std::string::npos;) {
      caf::anon_send(desk_, Line{guest.connection, guest.text.substr(0, end)});
      guest.text.erase(0, end + 1);
    }
    return guest.text.size() <= kLongest;
  }

  const caf::actor desk_;
  int listener_ = -1;
  const int end_ = eventfd(0, EFD_CLOEXEC);
  std::thread thread_;
};

struct DoorState {
  std::unique_ptr<Door> door;
};
caf::behavior door_actor(caf::stateful_actor<DoorState>* self, std::unique_ptr<Door> door) {
  self->state.door = std::move(door);
  return {[](caf::unit_t) {}};
}

// ---------------------------------------------------------------- the desk

template <class T>
bool take(std::string_view& text, T& value) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  text.remove_prefix(std::size_t(end - text.data()));
  return error == std::errc();
}

// Of each client, the request that is being counted and those behind it. Runs that conflict are done
// again in any order: a later number that overtakes would make an earlier one an old one.
struct DeskState {
  std::map<std::int64_t, std::deque<std::function<void()>>> adds;
};

// Knows what a line means, asks the session, and answers.
caf::behavior desk_actor(caf::stateful_actor<DeskState>* self, const Service* service,
                         caf::actor runs) {
  return {[self, service, runs](const Line& line) {
    std::string_view text = line.text;
    const std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    std::int64_t client = -1, number = 0;
    float x = 0;
    const bool add = word == "add", crash = word == "crash";
    if (!take(text, client) || !take(text, number) || client < 0 || client >= kClients ||
        number < 1 || !(add || crash || (word == "predict" && take(text, x))) || !text.empty())
      return line.from->say(
          fmt::format("{} {} error expected add C N, predict C N X or crash C N", client, number));
    if (crash) throw std::runtime_error("as it was asked to");
    AskRun run{service->add_step,
               {Tensor::scalar(client), Tensor::scalar(number)},
               {.timeout = 2s, .durable = true}};
    if (!add) run = {service->predict_step, {Tensor::scalar(x)}, {.timeout = 2s}};
    const auto over = [self, client, add] {
      if (!add) return;
      auto& adds = self->state.adds[client];
      adds.pop_front();
      if (!adds.empty()) adds.front()();
    };
    const auto begin = [=, from = line.from] {
      self->request(runs, caf::infinite, run)
          .then(
              [=](const RunResult& result) {
                std::string answer = "error " + result.status.message();
                if (result.status.ok() && add)
                  answer = std::to_string(result.fetches[0].item<std::int64_t>());
                else if (result.status.ok() && !result.fetches[1].item<bool>())
                  answer = "error nothing is learned yet";
                else if (result.status.ok())
                  answer = fmt::format("{:.4f}", result.fetches[0].item<float>());
                from->say(fmt::format("{} {} {}", client, number, answer));
                over();
              },
              [=](const caf::error&) {
                from->say(fmt::format("{} {} error its session's actor has ended", client, number));
                over();
              });
    };
    if (!add) return begin();
    auto& adds = self->state.adds[client];
    adds.push_back(begin);
    if (adds.size() == 1) begin();
  }};
}

// Waits for the file of the child process, and gives what it learned to the session.
caf::behavior loader_actor(caf::event_based_actor* self, Service* service,
                           std::shared_ptr<Session> session, std::string file) {
  self->send(self, caf::unit);
  return {[=](caf::unit_t) {
    if (!std::filesystem::exists(file)) return self->delayed_send(self, 100ms, caf::unit);
    session->once("learned", [&] {
      session->restore(file, {.only = service->net.parameters()});
      session->run({}, {service->learn});
    });
    self->quit();
  }};
}

// ---------------------------------------------------------------- the program

int main(int argc, char** argv) {
  std::string path, file;
  for (int i = 1; i + 1 < argc; ++i) {
    if (std::string_view(argv[i]) == "--socket") path = argv[i + 1];
    if (std::string_view(argv[i]) == "--learn") file = argv[i + 1];
  }
  if (!file.empty()) return learn(file, argc, argv);
  JobOptions options = JobOptions::from_args(argc, argv);
  if (options.dir.empty()) options.dir = JobOptions::supervised_dir();
  if (path.empty() || options.dir.empty())
    return print("[troupe run --] service --socket PATH [--job-dir DIR]\n"), 2;
  file = options.dir + "/sine.safetensors";

  caf::actor_system_config config;
  config.set("scheduler.policy", caf::atom("sharing"));
  caf::actor_system system{config};
  Service service;
  auto session = std::make_shared<Session>(service.g, system, Cluster{.threads = 1});
  Job job{*session, options};
  service.add_step =
      session->compile({service.counted}, {service.add}, {service.client, service.number});
  service.predict_step =
      session->compile({service.predicted, service.learned.value()}, {}, {service.x});

  // Who is started again with whom: a desk is of one session's actor, a door of one desk.
  caf::actor runs, desk;
  const SupervisorSpec often{
      .intensity = 20, .period = 10s, .first_pause = 10ms, .longest_pause = 1s};
  SupervisorSpec chain = often;
  chain.strategy = Strategy::rest_for_one;
  std::vector<ActorSpec> front = {
      {.child = {.id = "runs"},
       .start = [&](caf::actor_system& s) -> Expected<caf::actor> {
         TROUPE_TRY(runs, spawn_session_actor(s, session));
         return runs;
       }},
      {.child = {.id = "desk"},
       .start = [&](caf::actor_system& s) -> Expected<caf::actor> {
         return desk = s.spawn(desk_actor, &service, runs);
       }},
      {.child = {.id = "door"},
       .start = [&](caf::actor_system& s) -> Expected<caf::actor> {
         try {
           return s.spawn(door_actor, std::make_unique<Door>(path, desk));
         } catch (const Error& error) {
           return error.status();
         }
       }},
  };
  caf::actor top = value_or_throw(spawn_supervisor(
      system, often,
      {supervisor_child({.id = "front"}, chain, std::move(front)),
       {.child = {.id = "loader", .restart = Restart::transient},
        .start = [&](caf::actor_system& s) -> Expected<caf::actor> {
          return s.spawn<caf::detached>(loader_actor, &service, session, file);
        }},
       process_child(
           {.child = {.id = "learner", .restart = Restart::transient},
            .command = {std::filesystem::read_symlink("/proc/self/exe").string(), "--learn", file},
            // It is not the program that `troupe run` keeps running.
            .environment = {{"TROUPE_JOB", ""}}})}));
  // Whoever supervises the supervisor: a service without a door is started again as a whole. CAF
  // may tell of an actor's end after it has counted it as done, when the job is gone.
  struct Watch {
    std::mutex mutex;
    Job* job;
    bool given_up = false;
  };
  const auto watch = std::make_shared<Watch>();
  watch->job = &job;
  caf::actor_cast<caf::abstract_actor*>(top)->attach_functor([watch](const caf::error&) {
    std::lock_guard lock(watch->mutex);
    watch->given_up = true;
    if (watch->job) watch->job->stop();
  });
  job.serve();  // until SIGTERM; an Error of it ends the process, and troupe run starts it again
  bool failed = false;
  {
    std::lock_guard lock(watch->mutex);
    failed = watch->given_up;
    watch->job = nullptr;
  }
  caf::anon_send_exit(top, caf::exit_reason::user_shutdown);
  system.await_all_actors_done();
  top = runs = desk = nullptr;  // which nobody starts any more
  return failed ? 1 : job.exit_code();
}
