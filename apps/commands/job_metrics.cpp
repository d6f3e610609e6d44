#include "apps/commands/job_metrics.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "actors/job/job_folder.hpp"
#include "apps/commands/job_look.hpp"
#include "apps/commands/job_status.hpp"

namespace troupe {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostHeader = 8 << 10;
// A program that does not answer so fast is told of as one that does not.
constexpr int kAnswerWithin = 500;  // ms
constexpr JobMetrics::Seconds kLooksAfter{10};

// ------------------------------------------------------------------ figures

std::string number_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  return fmt::format("{}", value);
}

std::string label_text(std::string_view value) {
  std::string text;
  for (const char c : value) {
    if (c == '\n')
      text += "\\n";
    else
      text += c == '\\' || c == '"' ? std::string{'\\', c} : std::string{c};
  }
  return text;
}

class MetricsWriter {
 public:
  void begin(std::string_view name, std::string_view type, std::string_view help) {
    name_ = name;
    text_ +=
        fmt::format("# HELP troupe_job_{0} {2}\n# TYPE troupe_job_{0} {1}\n", name, type, help);
  }
  void put(double value, std::string_view labels = "") {
    text_ += fmt::format("troupe_job_{}{} {}\n", name_, labels, number_text(value));
  }
  void gauge(std::string_view name, double value, std::string_view help) {
    begin(name, "gauge", help);
    put(value);
  }
  std::string take() { return std::move(text_); }

 private:
  std::string name_, text_;
};

void put_field(MetricsWriter& out, const Json& json, const char* field, std::string_view name,
               std::string_view help) {
  const auto at = json.find(field);
  if (at != json.end() && at->is_number()) out.gauge(name, at->get<double>(), help);
}

void put_processes(MetricsWriter& out, const Json& processes) {
  double bytes = 0, stopped = 0;
  for (const Json& each : processes) {
    bytes += each["rss_bytes"].get<double>();
    stopped += each["state"] == "stopped";
  }
  out.gauge("processes", double(processes.size()), "Processes, with that of the supervisor.");
  out.gauge("stopped_processes", stopped, "Those that are stopped.");
  out.gauge("resident_memory_bytes", bytes, "Memory of all of them.");
}

// Not a number is null there.
void put_figures(MetricsWriter& out, const Json& programs) {
  out.begin("figure", "gauge", "The newest value that the program reported.");
  int number = -1;
  for (const Json& program : programs) {
    ++number;  // the same in the next life, unlike that of the process
    const auto figures = program.find("figures");
    if (figures == program.end() || !figures->is_object()) continue;
    for (const auto& [name, value] : figures->items())
      if (value.is_number() || value.is_null())
        out.put(value.is_null() ? std::nan("") : value.get<double>(),
                fmt::format("{{name=\"{}\",program=\"{}\"}}", label_text(name), number));
  }
}

// ------------------------------------------------------------------ HTTP

const char* reason_of(int code) {
  switch (code) {
    case 200:
      return "OK";
    case 400:
      return "Bad Request";
    case 404:
      return "Not Found";
    case 405:
      return "Method Not Allowed";
    default:
      return "Service Unavailable";
  }
}

std::string response(const HttpPage& page, bool body = true) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nCache-Control: no-store\r\n{}Connection: close\r\n\r\n{}",
      page.code, reason_of(page.code), page.text.size(),
      page.code == 405 ? "Allow: GET, HEAD\r\n" : "", body ? page.text : "");
}

// ------------------------------------------------------------------ pages

HttpPage unavailable_page(std::string why) { return {503, std::move(why) + "\n"}; }

HttpPage metrics_page(const std::string& folder) {
  const auto status = status_of_job(folder, {.answer_within_ms = kAnswerWithin});
  if (!status.ok()) return unavailable_page(status.status().message());
  return {200, metrics_text(*status)};
}

HttpPage health_page(JobMetrics::Seconds looked) {
  if (looked < kLooksAfter) return {200, "ok\n"};
  return unavailable_page(
      fmt::format("the supervisor has not looked after its program for {:.0f} s", looked.count()));
}

// Whether the program has begun its job in this life and can go on.
HttpPage ready_page(const std::string& folder) {
  const auto page = ProgressPage::read(folder);
  if (!page) return unavailable_page("the program has not begun its job");
  const auto process = pid_t((*page)->process.load());
  for (const ProcessLook& each : process_tree(getpid())) {
    if (each.pid != process) continue;
    if (each.stat.stopped() || each.stat.state == 'Z')
      return unavailable_page("the program is stopped");
    return {200, fmt::format("ready, at step {}\n", (*page)->step.load())};
  }
  return unavailable_page("the program has not begun its job in this life");
}

}  // namespace

std::string metrics_text(const Json& status) {
  MetricsWriter out;
  out.begin("lives_total", "counter", "Times that the program was started.");
  out.put(status["lives"].get<double>());
  put_field(out, status, "step", "step", "The step that the program has done.");
  put_field(out, status, "steps", "last_step", "The step after which it is done; 0: none is.");
  put_field(out, status, "seconds_since_step", "seconds_since_step",
            "How long ago that became so.");
  put_field(out, status, "recoveries", "lost_workers",
            "Workers that this life of the program lost and replaced.");
  if (const auto checkpoint = status.find("checkpoint"); checkpoint != status.end()) {
    put_field(out, *checkpoint, "step", "checkpoint_step", "The step of the newest checkpoint.");
    put_field(out, *checkpoint, "age_seconds", "checkpoint_age_seconds",
              "How long ago it was written; negative: it is gone.");
  }
  out.gauge("problems", double(status["problems"].size()),
            "What `troupe status` finds wrong: what is stopped, full, cut, or going in circles.");
  put_processes(out, status["processes"]);
  put_figures(out, status["programs"]);
  return out.take();
}

std::size_t http_header_size(std::string_view bytes) {
  const std::size_t crlf = bytes.find("\r\n\r\n"), lf = bytes.find("\n\n");
  if (crlf == bytes.npos && lf == bytes.npos) return bytes.npos;
  return crlf < lf ? crlf + 4 : lf + 2;
}

std::string http_answer(std::string_view request,
                        const std::function<HttpPage(std::string_view path)>& page) {
  std::string_view line = request.substr(0, std::min(request.find('\n'), request.size()));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t first = line.find(' '), last = line.rfind(' ');
  if (first == line.npos || last == first || !line.substr(last + 1).starts_with("HTTP/1."))
    return response({400, "this is no request of HTTP/1\n"});
  const std::string_view method = line.substr(0, first);
  std::string_view path = line.substr(first + 1, last - first - 1);
  path = path.substr(0, std::min(path.find('?'), path.size()));
  if (method != "GET" && method != "HEAD") return response({405, "GET and HEAD only\n"});
  return response(page(path), method == "GET");
}

Expected<Endpoint> parse_metrics_address(const std::string& text) {
  const bool port = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return parse_endpoint(port ? "127.0.0.1:" + text : text);
}

Expected<std::unique_ptr<JobMetrics>> JobMetrics::start(const Endpoint& at,
                                                        const std::string& folder,
                                                        std::function<Seconds()> looked) {
  std::unique_ptr<JobMetrics> made(new JobMetrics);
  made->address_ = at;
  AnswerServer::Options options;
  options.whole = http_header_size;
  options.most_question = kMostHeader;
  const auto page = [folder, looked = std::move(looked)](std::string_view path) -> HttpPage {
    if (path == "/metrics") return metrics_page(folder);
    if (path == "/healthz") return health_page(looked());
    if (path == "/readyz") return ready_page(folder);
    return {404, "there are /metrics, /healthz and /readyz\n"};
  };
  options.answer = [page](std::string_view request) { return http_answer(request, page); };
  TROUPE_TRY(made->server_, AnswerServer::start(made->address_, std::move(options)));
  return made;
}

}  // namespace troupe
