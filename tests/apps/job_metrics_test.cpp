#include "apps/commands/job_metrics.hpp"

#include <arpa/inet.h>
#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <random>
#include <vector>

#include "actors/job/job_folder.hpp"
#include "core/descriptor.hpp"

using namespace troupe;

namespace {

HttpPage page_of(std::string_view path) {
  return path == "/healthz" ? HttpPage{200, "ok\n"} : HttpPage{404, "no\n"};
}

// A folder of a job that was begun, and its page.
struct ServedJob {
  ServedJob() {
    char path[] = "/tmp/troupe-metrics-XXXXXX";
    folder = mkdtemp(path);
    job = value_or_throw(JobFolder::open(folder));
    throw_if_error(job->log({{"event", "started"}, {"life", 1}, {"pid", 1}}));
    metrics = value_or_throw(
        JobMetrics::start({"127.0.0.1", 0}, folder, [this] { return JobMetrics::Seconds(age); }));
  }
  ~ServedJob() {
    metrics.reset();
    std::filesystem::remove_all(folder);
  }
  Descriptor connect() const {
    Descriptor client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(metrics->address().port);
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::connect(client.get(), reinterpret_cast<sockaddr*>(&at), sizeof at) == 0);
    return client;
  }
  std::string get(const std::string& path) const {
    const Descriptor client = connect();
    const std::string request = "GET " + path + " HTTP/1.1\r\nHost: here\r\n\r\n";
    REQUIRE(send(client.get(), request.data(), request.size(), MSG_NOSIGNAL) ==
            ssize_t(request.size()));
    std::string text;
    char bytes[4096];
    for (ssize_t n; (n = recv(client.get(), bytes, sizeof bytes, 0)) > 0;)
      text.append(bytes, std::size_t(n));
    return text;
  }
  std::string folder;
  std::unique_ptr<JobFolder> job;
  std::atomic<double> age = 0;
  std::unique_ptr<JobMetrics> metrics;
};

}  // namespace

TEST_CASE("requests of HTTP are answered, and what is none is refused") {
  const auto code = [](std::string_view request) {
    const std::string answer = http_answer(request, page_of);
    REQUIRE(answer.starts_with("HTTP/1.1 "));
    return answer.substr(9, 3);
  };
  CHECK(code("GET /healthz HTTP/1.1\r\n\r\n") == "200");
  CHECK(code("GET /healthz?full=1 HTTP/1.0\n\n") == "200");
  CHECK(code("GET /etc/passwd HTTP/1.1\r\n\r\n") == "404");
  CHECK(code("POST /healthz HTTP/1.1\r\n\r\n") == "405");
  for (const char* garbage : {"\r\n\r\n", "GET\r\n\r\n", "GET /healthz\r\n\r\n", "\n\n",
                              "GET  HTTP/2\r\n\r\n", " HTTP/1.1\r\n\r\n", "\0\0\n\n"})
    CHECK(code(garbage) == "400");
  CHECK(http_answer("GET /healthz HTTP/1.1\r\n\r\n", page_of).ends_with("\r\n\r\nok\n"));
  CHECK(http_answer("HEAD /healthz HTTP/1.1\r\n\r\n", page_of).ends_with("close\r\n\r\n"));
  CHECK(http_header_size("GET / HTTP/1.1\r\nHost: a\r\n") == std::string_view::npos);
  CHECK(http_header_size("GET / HTTP/1.1\r\n\r\nmore") == 18);
  CHECK(http_header_size("GET / HTTP/1.1\n\n") == 16);
}

TEST_CASE("the figures of a job are in Prometheus' format") {
  const nlohmann::ordered_json status = {
      {"lives", 3},
      {"step", 17},
      {"checkpoint", {{"step", 10}, {"age_seconds", 1.5}}},
      {"problems", {"a process is stopped"}},
      {"processes",
       {{{"rss_bytes", 1024}, {"state", "runs"}}, {{"rss_bytes", 1024}, {"state", "stopped"}}}},
      {"programs",
       {{{"process", 7}, {"figures", {{"loss \"a\"\\\n", 0.5}, {"other", nullptr}}}},
        {{"process", 8}, {"error", "it does not answer"}}}}};
  const std::string text = metrics_text(status);
  for (const char* line :
       {"# TYPE troupe_job_lives_total counter\ntroupe_job_lives_total 3\n",
        "# TYPE troupe_job_step gauge\ntroupe_job_step 17\n", "troupe_job_checkpoint_step 10\n",
        "troupe_job_checkpoint_age_seconds 1.5\n", "troupe_job_problems 1\n",
        "troupe_job_processes 2\n", "troupe_job_stopped_processes 1\n",
        "troupe_job_resident_memory_bytes 2048\n",
        "troupe_job_figure{name=\"loss \\\"a\\\"\\\\\\n\",program=\"0\"} 0.5\n",
        "troupe_job_figure{name=\"other\",program=\"0\"} NaN\n"})
    CHECK_MESSAGE(text.find(line) != text.npos, line, " is not in ", text);
}

TEST_CASE("a supervisor says whether it and its program do what they should") {
  ServedJob served;
  CHECK(served.get("/healthz").starts_with("HTTP/1.1 200"));
  CHECK(served.get("/readyz").find("503 Service Unavailable") != std::string::npos);
  CHECK(served.get("/metrics").find("\ntroupe_job_lives_total 1\n") != std::string::npos);
  const auto page = ProgressPage::write(served.folder);
  REQUIRE(page);
  (*page)->step = 12;
  CHECK(served.get("/readyz").ends_with("ready, at step 12\n"));
  (*page)->process = 1;  // of another life
  CHECK(served.get("/readyz").starts_with("HTTP/1.1 503"));
  served.age = 11;
  CHECK(served.get("/healthz").starts_with("HTTP/1.1 503"));
}

TEST_CASE("who sends garbage over HTTP, or nothing, is in nobody's way") {
  ServedJob served;
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  std::mt19937_64 random(seed);
  std::vector<Descriptor> idle;
  for (int i = 0; i < 40; ++i) idle.push_back(served.connect());
  for (int i = 0; i < 200; ++i) {
    const Descriptor client = served.connect();
    std::string bytes(random() % 20'000, '\0');
    for (char& byte : bytes) byte = char(random() % 4 == 0 ? '\n' : random());
    (void)!send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  }
  CHECK(served.get("/healthz").ends_with("ok\n"));
}

TEST_CASE("a port alone is one of this machine only") {
  CHECK(value_or_throw(parse_metrics_address("9464")).text() == "127.0.0.1:9464");
  CHECK(value_or_throw(parse_metrics_address("0.0.0.0:80")).text() == "0.0.0.0:80");
  for (const char* wrong : {"", "here", "70000", ":80"})
    CHECK(parse_metrics_address(wrong).status().code() == Code::invalid_argument);
}
