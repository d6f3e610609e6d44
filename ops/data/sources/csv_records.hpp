// The records of a CSV file (RFC 4180), cell by cell.
#pragma once

#include <string>
#include <vector>

#include "ops/data/byte_stream.hpp"

namespace troupe {

// Reads forwards; a copy goes on by itself. A record is at most 16 MiB and a million cells.
class CsvRecords {
 public:
  static Expected<CsvRecords> open(DataFilePtr file, char delimiter);

  // The cells of the next record that is no empty line; false at the end. data_loss for quotes that
  // do not close, or stand inside of a cell.
  Expected<bool> next(std::vector<std::string>& cells);
  // data_loss: `why` in the record that was read last, by the line on which it begins.
  Status wrong(const std::string& why) const;
  std::size_t bytes_held() const { return stream_.bytes_held(); }

 private:
  CsvRecords(ByteStream stream, char delimiter)
      : stream_(std::move(stream)), delimiter_(delimiter) {}
  Expected<int> take();  // a byte; -1: the end
  Expected<int> peek();
  Status skip_byte_order_mark();
  Expected<bool> read_cell(std::string& cell);  // whether another one follows
  Expected<bool> quoted_rest(std::string& cell);
  Status grow(std::size_t by);

  ByteStream stream_;
  char delimiter_;
  std::uint64_t line_ = 1, begin_line_ = 1;  // of what is next; of the record
  std::size_t size_ = 0;                     // of the record so far
  bool started_ = false;
};

}  // namespace troupe
