#include "actors/client/batcher.hpp"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <exception>

namespace troupe {

struct Batcher::Batch {
  std::string type;
  std::vector<std::vector<Tensor>> requests;
  std::int64_t rows = 0;
  bool closed = false, done = false;
  std::vector<Expected<std::vector<Tensor>>> answers;
  std::condition_variable changed;
};

namespace {

Expected<std::int64_t> rows_of(const std::vector<Tensor>& feeds) {
  if (feeds.empty()) return invalid_argument("a request has feeds");
  std::int64_t rows = 0;
  for (std::size_t i = 0; i < feeds.size(); ++i) {
    const std::string what = "feed " + std::to_string(i) + " of a request ";
    if (!feeds[i].defined()) return invalid_argument(what + "is a Tensor of nothing");
    if (feeds[i].rank() == 0 || feeds[i].dim(0) < 1)
      return invalid_argument(what + "has no rows: " + feeds[i].shape().text());
    if (i > 0 && feeds[i].dim(0) != rows)
      return invalid_argument(what + "has " + std::to_string(feeds[i].dim(0)) +
                              " rows where the first one has " + std::to_string(rows));
    rows = feeds[i].dim(0);
  }
  return rows;
}

// What all requests of a batch have alike.
std::string type_of_row(const std::vector<Tensor>& feeds) {
  std::string out;
  for (const Tensor& feed : feeds) {
    out += dtype_name(feed.dtype());
    for (int i = 1; i < feed.rank(); ++i) out += ',' + std::to_string(feed.dim(i));
    out += ';';
  }
  return out;
}

// Feed `i` of all requests, one after the other.
Expected<Tensor> joined(const std::vector<std::vector<Tensor>>& requests, std::size_t i,
                        std::int64_t rows) {
  const Tensor& first = requests[0][i];
  std::vector<std::int64_t> dims(first.shape().dims().begin(), first.shape().dims().end());
  dims[0] = rows;
  TROUPE_TRY(Shape shape, Shape::make(dims));
  TROUPE_TRY(Tensor all, Tensor::make(first.dtype(), shape));
  std::int64_t at = 0;
  for (const std::vector<Tensor>& request : requests) {
    const Tensor& part = request[i];
    if (part.dtype() == DType::string)
      std::copy_n(part.data<std::string>(), part.elements(), all.mutable_data<std::string>() + at);
    else if (part.bytes() != 0)
      std::memcpy(
          static_cast<char*>(all.mutable_raw()) + std::size_t(at) * dtype_size(part.dtype()),
          part.raw(), part.bytes());
    at += part.elements();
  }
  return all;
}

Expected<std::vector<Tensor>> run_all(const Batcher::Run& run,
                                      const std::vector<std::vector<Tensor>>& requests,
                                      std::int64_t rows) {
  std::vector<Tensor> feeds;
  for (std::size_t i = 0; i < requests[0].size(); ++i) {
    if (requests.size() == 1) {
      feeds.push_back(requests[0][i]);
      continue;
    }
    TROUPE_TRY(Tensor feed, joined(requests, i, rows));
    feeds.push_back(std::move(feed));
  }
  try {
    TROUPE_TRY(auto fetches, run(std::move(feeds)));
    for (std::size_t i = 0; i < fetches.size(); ++i)
      if (!fetches[i].defined() || fetches[i].rank() == 0 || fetches[i].dim(0) != rows)
        return invalid_argument("fetch " + std::to_string(i) + " of a batch of " +
                                std::to_string(rows) + " rows is " + fetches[i].text(0) +
                                ", not a row for each");
    return fetches;
  } catch (const Error& error) {
    return error.status();
  } catch (const std::exception& error) {  // others wait for an answer
    return internal_error(std::string("what computes batches threw: ") + error.what());
  } catch (...) {
    return internal_error("what computes batches threw what is no std::exception");
  }
}

Status check(const Batcher::Run& run, const BatchOptions& options) {
  if (!run) return invalid_argument("a Batcher runs an empty function");
  if (options.most < 1) return invalid_argument("a batch has at least 1 row");
  if (options.wait.count() < 0) return invalid_argument("a time to wait is not negative");
  return ok_status();
}

}  // namespace

Batcher::Batcher(Run run, const BatchOptions& options)
    : options_(options), run_(std::make_shared<const Run>(std::move(run))) {
  throw_if_error(check(*run_, options));
}

Batcher::~Batcher() = default;

void Batcher::close(Batch& batch) {
  if (batch.closed) return;
  batch.closed = true;
  open_.erase(batch.type);
  batch.changed.notify_all();
}

Expected<std::vector<Tensor>> Batcher::try_ask(std::vector<Tensor> feeds) {
  TROUPE_TRY(const std::int64_t rows, rows_of(feeds));
  const std::string type = type_of_row(feeds);
  std::unique_lock lock(mutex_);
  if (auto full = open_.find(type);
      full != open_.end() && rows > options_.most - full->second->rows)
    close(*std::shared_ptr(full->second));
  auto& open = open_[type];
  const bool first = !open;
  if (first) {
    open = std::make_shared<Batch>();
    open->type = type;
  }
  const std::shared_ptr<Batch> batch = open;
  const std::size_t place = batch->requests.size();
  batch->requests.push_back(std::move(feeds));
  batch->rows += rows;
  if (batch->rows >= options_.most) close(*batch);
  if (!first) {
    batch->changed.wait(lock, [&] { return batch->done; });
    return std::move(batch->answers[place]);
  }
  const std::chrono::nanoseconds longest = std::chrono::hours{24};
  batch->changed.wait_for(lock, std::min(options_.wait, longest), [&] { return batch->closed; });
  close(*batch);
  const std::shared_ptr<const Run> run = run_;
  counts_.rows += std::uint64_t(batch->rows), ++counts_.batches;
  lock.unlock();
  const auto fetches = run_all(*run, batch->requests, batch->rows);
  std::vector<Expected<std::vector<Tensor>>> answers;
  std::int64_t at = 0;
  for (const std::vector<Tensor>& request : batch->requests) {
    const std::int64_t end = at + request[0].dim(0);
    if (!fetches.ok()) {
      answers.emplace_back(fetches.status());
    } else {
      std::vector<Tensor> own;
      for (const Tensor& fetch : *fetches) own.push_back(fetch.rows(at, end));
      answers.emplace_back(std::move(own));
    }
    at = end;
  }
  lock.lock();
  batch->answers = std::move(answers);
  batch->done = true;
  batch->changed.notify_all();
  return std::move(batch->answers[place]);
}

void Batcher::use(Run run) {
  throw_if_error(check(run, options_));
  const auto next = std::make_shared<const Run>(std::move(run));
  std::shared_ptr<const Run> before;  // goes outside of the lock
  std::lock_guard lock(mutex_);
  before = std::exchange(run_, next);
}

Batcher::Counts Batcher::counts() const {
  std::lock_guard lock(mutex_);
  return counts_;
}

}  // namespace troupe
