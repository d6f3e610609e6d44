#include "actors/supervision/kept_workers.hpp"

#include <doctest/doctest.h>

#include "tests/contains.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using test::contains;
using Words = std::vector<std::string>;

TEST_CASE("a program is told of its workers before its own words begin") {
  const KeptWorkers workers{.local = 1, .hosts = {"a", "b"}, .listen = "h:1", .secret_file = "s"};
  CHECK(workers.tell({"p", "x", "--", "y"}) ==
        Words{"p", "x", "--listen", "h:1", "--wait-for", "3", "--secret-file", "s", "--", "y"});
  CHECK(workers.tell({"--"}).front() == "--");
  CHECK(workers.tell({"p"}).back() == "s");
}

TEST_CASE("a program waits for the workers that are no spares") {
  KeptWorkers workers;
  workers.local = 3;
  workers.spares = 1;
  workers.listen = "127.0.0.1:7077";
  workers.secret_file = "secret";
  CHECK(workers.specs().size() == 3);
  CHECK(workers.tell({"train"}) == std::vector<std::string>{"train", "--listen", "127.0.0.1:7077",
                                                            "--wait-for", "2", "--secret-file",
                                                            "secret", "--spares", "1"});
}

TEST_CASE("a worker of a host gets the secret as its input, one of this machine as a file") {
  KeptWorkers workers{
      .local = 1, .hosts = {"a"}, .troupe = "/bin/troupe", .listen = "h:1", .secret_file = "s"};
  workers.ssh = {"ssh", "-p", "7"};
  const auto specs = workers.specs();
  REQUIRE(specs.size() == 2);
  CHECK(specs[0].command == Words{"/bin/troupe", "worker", "--master", "h:1", "--orphan-timeout",
                                  "600", "--secret-file", "s"});
  CHECK(specs[0].input.empty());
  CHECK(specs[1].command == Words{"ssh", "-p", "7", "a", "troupe", "worker", "--master", "h:1",
                                  "--orphan-timeout", "600", "--secret-file", "-"});
  CHECK(specs[1].input == "s");
  CHECK(specs[0].child.id != specs[1].child.id);
}

TEST_CASE("a file of hosts has one or several on a line, and is refused by the line") {
  testing::TemporaryDir dir;
  const auto read = [&](const std::string& text) {
    dir.write("hosts", text);
    return read_hosts(dir.path("hosts"));
  };
  CHECK(read("# all\na\n\n  n[1-2] # two\r\nb").value() == Words{"a", "n1", "n2", "b"});
  for (const auto& [text, what] : std::vector<std::pair<std::string, std::string>>{
           {"", "names no host"},
           {"#a\n", "names no host"},
           {"a\nb c\n", "hosts:2: "},
           {"a\n-oProxyCommand\n", "hosts:2: a host does not begin with '-'"},
           {"n[1-999999999]\n", "hosts:1: the list has more than 4096 hosts"},
           {"n[1-4096]\na\n", "hosts:2: the list has more than 0 hosts"},
           {std::string("a\0b", 3), "hosts:1: "}}) {
    const auto hosts = read(text);
    REQUIRE_FALSE(hosts.ok());
    CHECK_MESSAGE(contains(hosts.status().message(), what), hosts.status().message());
  }
  CHECK(read_hosts("/no/such").status().code() == Code::not_found);
}
