// What a supervisor says of its job over HTTP: /metrics, /healthz, /readyz.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "actors/net/transport.hpp"
#include "actors/processes/answer_server.hpp"
#include "core/status.hpp"

namespace troupe {

// The figures of status_of_job() in Prometheus' text format 0.0.4. All begin with troupe_job_.
std::string metrics_text(const nlohmann::ordered_json& status);

struct HttpPage {
  int code = 200;
  std::string text;
};
// The answer, with headers, to a request of which the header is whole: GET and HEAD of what `page`
// knows by its path; a page of code 404 for other paths.
std::string http_answer(std::string_view request,
                        const std::function<HttpPage(std::string_view path)>& page);
// How many bytes the header of a request has; npos: more have to come.
std::size_t http_header_size(std::string_view bytes);

// "PORT" is one of 127.0.0.1.
Expected<Endpoint> parse_metrics_address(const std::string& text);

class JobMetrics {
 public:
  using Seconds = std::chrono::duration<double>;
  // Of the job in that folder, which this process supervises. `looked`, from any thread: how long
  // ago it looked after its program. unavailable: that address cannot be listened at.
  static Expected<std::unique_ptr<JobMetrics>> start(const Endpoint& at, const std::string& folder,
                                                     std::function<Seconds()> looked);
  const Endpoint& address() const { return address_; }

 private:
  JobMetrics() = default;
  Endpoint address_;
  std::unique_ptr<AnswerServer> server_;
};

}  // namespace troupe
