#include "actors/job/control_socket.hpp"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

using namespace troupe;

namespace {

constexpr int kPatience = 60'000;  // ms: a busy machine

struct Served {
  Served() {
    char path[] = "/tmp/troupe-control-XXXXXX";
    folder = mkdtemp(path);
    socket = value_or_throw(ControlSocket::open(folder));
    this->path = folder + "/control." + std::to_string(getpid());
  }
  ~Served() {
    socket.reset();
    std::filesystem::remove_all(folder);
  }
  Expected<nlohmann::ordered_json> ask(std::string_view question) {
    return ask_control_socket(path, question, kPatience);
  }
  int connect() const {
    const int client = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
    REQUIRE(::connect(client, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    return client;
  }
  std::string folder, path;
  std::unique_ptr<ControlSocket> socket;
};

}  // namespace

TEST_CASE("who asks the socket of a process gets what its sessions say, and what was noted") {
  Served served;
  served.socket->add_session([](std::string_view question) -> nlohmann::ordered_json {
    return {{"waits", {question}}};
  });
  served.socket->add_session([](std::string_view) { return nlohmann::ordered_json(); });  // closes
  served.socket->note("checkpoint", "the disk is full");
  const auto waits = served.ask("waits");
  REQUIRE(waits.ok());
  CHECK((*waits)["process"] == getpid());
  CHECK((*waits)["sessions"].dump() == R"([{"waits":["waits"]}])");
  CHECK_FALSE(waits->contains("notes"));
  CHECK((*served.ask("status"))["notes"]["checkpoint"] == "the disk is full");
  served.socket->note("checkpoint", "");
  CHECK((*served.ask("status"))["notes"].empty());
}

TEST_CASE("nothing is kept of a session that is closed, also if nobody asks") {
  Served served;
  const auto held = std::make_shared<int>(1);
  const auto says = [&](int n) {
    return served.socket->add_session(
        [n, held](std::string_view) { return nlohmann::ordered_json(n); });
  };
  const std::uint64_t first = says(1), second = says(2);
  says(3);
  CHECK(held.use_count() == 4);
  served.socket->remove_session(second);
  CHECK(held.use_count() == 3);
  CHECK((*served.ask("waits"))["sessions"].dump() == "[1,3]");
  served.socket->remove_session(second);
  served.socket->remove_session(first);
  CHECK((*served.ask("waits"))["sessions"].dump() == "[3]");
}

TEST_CASE("the socket is its owner's, and gone with the process that served it") {
  Served served;
  struct stat file {};
  REQUIRE(stat(served.path.c_str(), &file) == 0);
  CHECK((file.st_mode & 0777) == 0600);
  served.socket.reset();
  CHECK(stat(served.path.c_str(), &file) != 0);
  CHECK(served.ask("waits").status().code() == Code::unavailable);
  CHECK_FALSE(ControlSocket::open("/nowhere/at/all").ok());
}

TEST_CASE("a folder with a long path has a socket, too") {
  Served served;
  const std::string deep = served.folder + "/" + std::string(200, 'd');
  std::filesystem::create_directory(deep);
  auto socket = ControlSocket::open(deep);
  REQUIRE(socket.ok());
  CHECK(ask_control_socket(deep + "/control." + std::to_string(getpid()), "waits", kPatience).ok());
}

TEST_CASE("nonsense, silence and a thousand connections do not keep the socket from an answer") {
  Served served;
  const std::uint64_t seed = 7;
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  CHECK((*served.ask("give me all"))["error"].is_string());
  std::vector<int> open;
  for (int i = 0; i < 1000; ++i) {
    const int client = open.emplace_back(served.connect());
    std::string bytes(random() % 200, ' ');
    for (char& byte : bytes) byte = char(random());
    if (i % 3 != 0) (void)send(client, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (i % 5 == 0) {
      close(client);
      open.pop_back();
    }
    if (open.size() > 200) {  // beyond what a process may have open
      close(open.front());
      open.erase(open.begin());
    }
    if (i % 100 == 0) CHECK(served.ask("waits").ok());
  }
  CHECK(served.ask("status").ok());
  for (int client : open) close(client);
}
