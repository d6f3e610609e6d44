// Command lines, addresses, secrets and environment variables that are wrong in one place: each is
// answered with what was expected instead.
#include <doctest/doctest.h>

#include "actors/cluster.hpp"
#include "actors/net/transport.hpp"
#include "actors/runtime/worker_process.hpp"
#include "tests/apps/command.hpp"
#include "tests/environment_variable.hpp"
#include "tests/serialization/temporary.hpp"

using namespace troupe;
using testing::TemporaryDir;

namespace {

// Arguments, and a part of the answer that says what was wanted.
struct Arguments {
  const char* text;
  const char* says;
};

const Arguments kArguments[] = {
    {"train mnist-mlp --threads -1", "0 to 1024"},
    {"train mnist-mlp --threads 1000000000", "0 to 1024"},
    {"train mnist-mlp --threads 99999999999999999999", "--threads"},
    {"train mnist-mlp --threads two", "--threads"},
    {"train mnist-mlp --step-memory 2GB", "65536, 512MiB or 2GiB"},
    {"train mnist-mlp --step-memory -1", "65536, 512MiB or 2GiB"},
    {"train mnist-mlp --step-memory ''", "--step-memory"},
    {"train mnist-mlp --batch -1", "1 to 1000000"},
    {"train mnist-mlp --batch 1000001", "1 to 1000000"},
    {"train mnist-mlp --batch 9223372036854775808", "--batch"},
    {"train mnist-mlp --batch 1.5", "--batch"},
    {"train mnist-mlp --batch ''", "--batch"},
    {"train mnist-mlp --learning-rate nan", "--learning-rate"},
    {"train mnist-mlp --learning-rate -nan", "--learning-rate"},
    {"train mnist-mlp --learning-rate inf", "--learning-rate"},
    {"train mnist-mlp --learning-rate -0.1", "--learning-rate"},
    {"train mnist-mlp --learning-rate 1e999", "--learning-rate"},
    {"train mnist-mlp --learning-rate fast", "--learning-rate"},
    {"train mnist-mlp --epochs nan", "--epochs"},
    {"train mnist-mlp --epochs -1", "--epochs"},
    {"train mnist-mlp --epochs inf", "--epochs"},
    {"train mnist-mlp --examples 0", "1 to 10000000"},
    {"train mnist-mlp --examples 99999999999", "--examples"},
    {"train mnist-mlp --steps 1000000001", "1 to 1000000000"},
    {"train mnist-mlp --steps 5x", "--steps"},
    {"train mnist-mlp --replicas 1025", "1 to 1024"},
    {"train mnist-mlp --replicas -2", "1 to 1024"},
    {"train mnist-mlp --seed -1", "--seed"},
    {"train mnist-mlp --seed 18446744073709551616", "--seed"},
    {"train mnist-mlp --keep 0", "1 to 1000"},
    {"train mnist-mlp --keep 1001", "1 to 1000"},
    {"train mnist-mlp --wait-for -1", "0 to 4096"},
    {"train mnist-mlp --wait-for 4097 --listen 127.0.0.1:0", "0 to 4096"},
    {"train mnist-mlp --cluster local:-1", "0 to 4096"},
    {"train mnist-mlp --cluster local:99999999999", "0 to 4096"},
    {"train mnist-mlp --cluster local:4097", "0 to 4096"},
    {"train mnist-mlp --cluster local:", "0 to 4096"},
    {"train mnist-mlp --cluster local:+2", "0 to 4096"},
    {"train mnist-mlp --cluster 'local: 2'", "0 to 4096"},
    {"train mnist-mlp --cluster local:2x", "0 to 4096"},
    {"train mnist-mlp --cluster local:0x2", "0 to 4096"},
    {"train mnist-mlp --cluster nonsense:2", "'local', 'local:W', 'slurm' or 'torchrun'"},
    {"train mnist-mlp --cluster LOCAL", "'local', 'local:W', 'slurm' or 'torchrun'"},
    {"train mnist-mlp --cluster ''", "'local', 'local:W', 'slurm' or 'torchrun'"},
    {"train mnist-mlp --checkpoint-dir /nowhere --checkpoint-every -5", "such as 30s"},
    {"train mnist-mlp --checkpoint-dir /nowhere --checkpoint-every s", "such as 30s"},
    {"train mnist-mlp --checkpoint-dir /nowhere --checkpoint-every 0s", "such as 30s"},
    {"train mnist-mlp --checkpoint-dir /nowhere --checkpoint-every 1.5s", "such as 30s"},
    {"train mnist-mlp --checkpoint-dir /nowhere --checkpoint-every 5ss", "such as 30s"},
    {"train mnist-mlp --checkpoint-dir /nowhere --checkpoint-every 99999999999999999999",
     "such as 30s"},
    {"train mnist-mlp --listen host --wait-for 1 --steps 1 --quiet", "like 127.0.0.1:7077"},
    {"train mnist-mlp --listen :0 --wait-for 1 --steps 1 --quiet", "like 127.0.0.1:7077"},
    {"train mnist-mlp --listen 127.0.0.1:70000 --wait-for 1 --steps 1 --quiet",
     "like 127.0.0.1:7077"},
    {"train mnist-mlp --listen 0.0.0.0:0 --wait-for 1 --steps 1 --quiet", "secret"},
    {"train mnist-mlp --cluster local:2 --secret-file /no/such/file", "/no/such/file"},
    {"train mnist-mlp --cluster local:2 --secret-file /", "16 to 64 bytes"},
    {"train mnist-mlp --cluster local:2 --secret-file /dev/null", "16 to 64 bytes"},
    {"train mnist-mlp --cluster local:2 --secret-file /dev/zero", "16 to 64 bytes"},
    {"train mnist-mlp --device 'NO DEVICE' --steps 1 --quiet", "NO DEVICE"},
    {"train mnist-mlp --output ''", "--output"},
    {"train mnist-mlp --log loud", "--log"},
    {"train mnist-mlp mnist-conv", "mnist-conv"},
    {"train ''", "mnist-mlp"},
    {"train ../mnist-mlp", "mnist-mlp"},
    {"train mnist-mlp --data /dev/null --steps 1 --quiet", "/dev/null"},
    {"train mnist-mlp --data '' --steps", "--steps"},
    {"worker --master nowhere", "like 127.0.0.1:7077"},
    {"worker --master 127.0.0.1:", "like 127.0.0.1:7077"},
    {"worker --master 127.0.0.1:-1", "like 127.0.0.1:7077"},
    {"worker --master '[::1:7077'", "like 127.0.0.1:7077"},
    {"worker --master 127.0.0.1:1 --listen '[::1'", "like 127.0.0.1:7077"},
    {"worker --master 127.0.0.1:1 --listen 127.0.0.1:65536", "like 127.0.0.1:7077"},
    {"worker --master 127.0.0.1:1 --secret-file /dev/zero", "16 to 64 bytes"},
    {"worker --listen 127.0.0.1:0", "--master"},
    {"graph mnist-mlp --batch 0", "1 to 1000000"},
    {"graph mnist-mlp --replicas 0", "1 to 1024"},
    {"graph mnist-mlp --device /cpu:x", "device"},
    {"bench step --rounds 1001", "1 to 1000"},
    {"bench train --threads 1025", "1 to 1024"},
    {"bench train --cluster local:-1", "0 to 4096"},
    {"ckpt verify", "path"},
    {"ckpt verify /no/such/checkpoint", "/no/such/checkpoint"},
    {"ckpt verify /dev/null", "/dev/null"},
    {"ckpt ls", "directory"},
    {"ckpt burn /", "there is no command 'troupe ckpt burn'"},
    {"--", "'troupe' needs one of bench, chaos"},
    {"--output json", "'--output' stands before the command"},
};

const char* kEndpoints[] = {
    "",        ":",         "host",       ":0",         "host:",
    "host:x",  "host:-1",   "host:65536", "host:70000", "host:1 ",
    "host: 1", "host:+1",   "host:0x10",  "[::1",       "[::1]",
    "[::1]:",  "::1:7077",  "[]:7077",    "[:7077",     "]:7077",
    "a]b:1",   "[::1]]:1x", "host:1:2",   "[::1:1",     "host:99999999999999999999"};

struct Secret {
  const char* what;
  std::string content;
  const char* says;
};

}  // namespace

TEST_CASE("hostile arguments by hand are answered with what was wanted") {
  for (const Arguments& arguments : kArguments) {
    INFO("troupe " << std::string(arguments.text));
    Ended ended = troupe_command(arguments.text);
    CHECK(ended.code >= 1);
    CHECK(ended.code <= 2);
    CHECK_MESSAGE(contains(ended.err, arguments.says), ended.err);
    CHECK(ended.out.empty());
  }
  MESSAGE("hostile inputs by hand: " << std::size(kArguments));
}

TEST_CASE("hostile addresses by hand are refused with an example of one") {
  for (const char* text : kEndpoints) {
    INFO(std::string(text));
    Status status = parse_endpoint(text).status();
    CHECK(status.code() == Code::invalid_argument);
    CHECK(contains(status.text(), "like 127.0.0.1:7077"));
  }
  MESSAGE("hostile inputs by hand: " << std::size(kEndpoints));
}

TEST_CASE("hostile secrets by hand are refused with the length that is wanted") {
  TemporaryDir dir;
  const Secret kSecrets[] = {
      {"empty", "", "not 0"},
      {"a newline", "\n", "not 0"},
      {"15 bytes", std::string(15, 'a'), "not 15"},
      {"15 bytes and a newline", std::string(15, 'a') + "\n", "not 15"},
      {"65 bytes", std::string(65, 'a'), "16 to 64 bytes"},
      {"65 bytes and a newline", std::string(65, 'a') + "\n", "16 to 64 bytes"},
      {"64 bytes and two newlines", std::string(64, 'a') + "\n\n", "16 to 64 bytes"},
      {"a megabyte", std::string(1 << 20, 'a'), "16 to 64 bytes"},
      {"zero bytes, too many", std::string(100, '\0'), "16 to 64 bytes"},
  };
  dir.write("s", "");
  std::filesystem::permissions(dir.path("s"), std::filesystem::perms(0600));  // which stays
  for (const Secret& secret : kSecrets) {
    INFO(std::string(secret.what));
    dir.write("s", secret.content);
    Status status = read_secret(dir.path("s")).status();
    CHECK(status.code() == Code::invalid_argument);
    CHECK_MESSAGE(contains(status.text(), secret.says), status.text());
    CHECK(contains(status.text(), dir.path("s")));
  }
  CHECK(read_secret(dir.path()).status().code() == Code::invalid_argument);  // a directory
  CHECK(read_secret(dir.path("none")).status().code() == Code::not_found);
  // Any bytes of the right number are a secret.
  dir.write("s", std::string(20, '\0') + "\n");
  CHECK(read_secret(dir.path("s")).value() == std::string(20, '\0'));
  MESSAGE("hostile inputs by hand: " << std::size(kSecrets) + 2);
}

TEST_CASE("a secret that others may read or write is refused with the command that mends it") {
  TemporaryDir dir;
  dir.write("s", std::string(20, 's'));
  for (unsigned mode : {0644u, 0640u, 0604u, 0620u, 0602u, 0601u, 0400u, 0600u}) {
    INFO("mode " << mode);
    std::filesystem::permissions(dir.path("s"), std::filesystem::perms(mode));
    auto secret = read_secret(dir.path("s"));
    CHECK(secret.ok() == ((mode & 077) == 0));
    if (secret.ok()) continue;
    CHECK(secret.status().code() == Code::failed_precondition);
    CHECK(contains(secret.status().text(), "chmod 600 '" + dir.path("s") + "'"));
  }
  std::filesystem::permissions(dir.path("s"), std::filesystem::perms(0644));
  for (const char* command : {"worker --master 127.0.0.1:1 --secret-file ",
                              "train mnist-mlp --listen 127.0.0.1:0 --wait-for 1 --secret-file "}) {
    Ended ended = troupe_command(command + dir.path("s"));
    CHECK(ended.code != 0);
    CHECK_MESSAGE(contains(ended.err, "chmod 600"), ended.err);
  }
}

TEST_CASE("hostile settings of an inherited worker by hand are refused") {
  const std::string good = "127.0.0.1:1\n127.0.0.1:0\n00ff\njob\n2000\n1\n";
  REQUIRE(parse_worker_settings(good).ok());
  const char* kTexts[] = {"",
                          "\n\n\n\n",
                          "127.0.0.1:1\n127.0.0.1:0\n00ff\njob\n",
                          "127.0.0.1:1\n127.0.0.1:0\n00ff\njob\nlong\n1\n",
                          "127.0.0.1:1\n127.0.0.1:0\n00ff\njob\n2000\n",
                          "127.0.0.1:1\n127.0.0.1:0\n00ff\njob\n2000\nmine\n",
                          "127.0.0.1:1\n127.0.0.1:0\n00ff\n",
                          "127.0.0.1:1\n127.0.0.1:0\n",
                          "nowhere\n127.0.0.1:0\n00ff\njob\n2000\n1\n",
                          "127.0.0.1:1\nnowhere\n00ff\njob\n2000\n1\n",
                          "127.0.0.1:1\n127.0.0.1:0\n00f\njob\n2000\n1\n",
                          "127.0.0.1:1\n127.0.0.1:0\n00fg\njob\n2000\n1\n",
                          "127.0.0.1:99999\n127.0.0.1:0\n00ff\njob\n2000\n1\n"};
  for (const char* text : kTexts) {
    INFO(std::string(text));
    Status status = parse_worker_settings(text).status();
    CHECK(status.code() == Code::invalid_argument);
    CHECK_FALSE(status.message().empty());
  }
  MESSAGE("hostile inputs by hand: " << std::size(kTexts));
}

TEST_CASE("hostile environments by hand are answered with what was wanted") {
  const std::pair<const char*, const char*> kValues[] = {
      {"TROUPE_ISA", ""},     {"TROUPE_ISA", "v1"},  {"TROUPE_ISA", "v22"},
      {"TROUPE_ISA", "V3"},   {"TROUPE_ISA", "3"},   {"TROUPE_ISA", " v3"},
      {"TROUPE_ISA", "v3v4"}, {"TROUPE_ISA", "v4-"}, {"TROUPE_ISA", "v3-amx"},
      {"TROUPE_LOG", "loud"}, {"TROUPE_LOG", "0"}};
  for (const auto& [name, value] : kValues) {
    const std::string said = std::string(name) + "=" + value;
    INFO(said);
    const troupe::test::EnvironmentVariable variable(name, value);
    Ended ended =
        troupe_command(name == std::string("TROUPE_LOG") ? "ckpt ls /nowhere" : "--version");
    // An empty value is none.
    CHECK(ended.code == (*value == '\0' ? 0 : 2));
    CHECK_MESSAGE((*value == '\0' || contains(ended.err, value)), ended.err);
  }
  MESSAGE("hostile inputs by hand: " << std::size(kValues) - 1);
}
