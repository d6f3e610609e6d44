#include "actors/processes/answer_server.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <stdexcept>

using namespace troupe;

namespace {

// All that it answers, up to its end.
std::string asked(const Endpoint& at, const std::string& question) {
  const Descriptor client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(std::uint16_t(at.port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(client.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  REQUIRE(send(client.get(), question.data(), question.size(), MSG_NOSIGNAL) ==
          ssize_t(question.size()));
  std::string all;
  char bytes[256];
  for (ssize_t n; (n = recv(client.get(), bytes, sizeof bytes, 0)) > 0;)
    all.append(bytes, std::size_t(n));
  return all;
}

}  // namespace

TEST_CASE("a question that cannot be answered ends its connection, and others are answered") {
  AnswerServer::Options options;
  options.whole = [](std::string_view bytes) { return bytes.find('\n'); };
  options.answer = [](std::string_view question) -> std::string {
    if (question == "throw") throw std::runtime_error("as it was asked to");
    return question == "nothing" ? "" : "answer to " + std::string(question);
  };
  Endpoint at{"127.0.0.1", 0};
  const auto server = AnswerServer::start(at, std::move(options));
  REQUIRE_MESSAGE(server.ok(), server.status().text());
  CHECK(asked(at, "first\n") == "answer to first");
  CHECK(asked(at, "throw\n").empty());
  CHECK(asked(at, "nothing\n").empty());
  CHECK(asked(at, "last\n") == "answer to last");
}
