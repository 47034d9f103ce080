#include "client/cli/format.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/one_line.h"
#include "client/cli/progress.h"

namespace regatta::cli {
namespace {

bool IsTerminal(int fd) {
  const char* term = std::getenv("TERM");
  return isatty(fd) && std::getenv("NO_COLOR") == nullptr && term != nullptr &&
         std::string_view(term) != "dumb";
}

// Four significant digits of value, without an exponent.
std::string Digits(double value) {
  const int before =
      value < 1 ? 1 : static_cast<int>(std::floor(std::log10(value))) + 1;
  return absl::StrFormat("%.*f", std::max(0, 4 - before), value);
}

}  // namespace

std::string FormatNs(int64_t ns) {
  if (ns <= 0) return "unknown";
  if (ns < 1'000) return absl::StrCat(ns, " ns");
  if (ns < 1'000'000) return Digits(ns / 1e3) + " us";
  if (ns < 1'000'000'000) return Digits(ns / 1e6) + " ms";
  return Digits(ns / 1e9) + " s";
}

std::string FormatSpan(int64_t ms) {
  if (ms < 0) return "unknown";
  if (ms < 1'000) return absl::StrCat(ms, " ms");
  const int64_t s = ms / 1'000;
  if (s < 60) return absl::StrCat(s, " s");
  if (s < 3'600) return absl::StrCat(s / 60, " min ", s % 60, " s");
  if (s < 86'400) return absl::StrCat(s / 3'600, " h ", s / 60 % 60, " min");
  return absl::StrCat(s / 86'400, " d ", s / 3'600 % 24, " h");
}

std::string FormatFlopRate(double flops_per_s) {
  if (flops_per_s >= 1e12) return Digits(flops_per_s / 1e12) + " TFLOP/s";
  return Digits(flops_per_s / 1e9) + " GFLOP/s";
}

std::string FormatByteRate(double bytes_per_s) {
  return Digits(bytes_per_s / 1e9) + " GB/s";
}

std::string FormatBytes(int64_t bytes) {
  if (bytes < 1024) return absl::StrCat(bytes, " B");
  if (bytes < 1 << 20) return Digits(bytes / 1024.0) + " KiB";
  if (bytes < 1 << 30) return Digits(bytes / double{1 << 20}) + " MiB";
  return Digits(bytes / double{1 << 30}) + " GiB";
}

std::string FormatSpeedup(double speedup, double low, double high) {
  if (speedup <= 0) return "unknown";
  if (low <= 0 || high <= 0) {
    return absl::StrFormat("%.2fx (screening only, no interval)", speedup);
  }
  return absl::StrFormat("%.2fx (95 %% interval %.2fx to %.2fx)", speedup, low,
                         high);
}

std::string FormatAchieved(const v1::TaskStatus& task, int64_t time_ns) {
  if (time_ns <= 0) return "unknown";
  const double flop_rate = task.flops() / (time_ns * 1e-9);
  const double byte_rate = task.bytes() / (time_ns * 1e-9);
  const double flop_share =
      task.peak_flops_per_s() > 0 ? flop_rate / task.peak_flops_per_s() : 0;
  const double byte_share = task.bandwidth_bytes_per_s() > 0
                                ? byte_rate / task.bandwidth_bytes_per_s()
                                : 0;
  // Below eight operations a byte, no machine of today is bound by arithmetic.
  const bool memory_bound = flop_share > 0 && byte_share > 0
                                ? byte_share > flop_share
                                : task.flops() < 8 * task.bytes();
  std::string text =
      memory_bound ? FormatByteRate(byte_rate) : FormatFlopRate(flop_rate);
  const double share = memory_bound ? byte_share : flop_share;
  if (share > 0) {
    absl::StrAppendFormat(&text, " (%.0f %% of the measured %s", share * 100,
                          memory_bound ? "memory bandwidth" : "peak");
    // Only one core was measured.
    if (const int threads = task.policy().threads(); threads > 1) {
      absl::StrAppend(&text, " of one core times ", threads);
    }
    text += ")";
  }
  return text;
}

std::string FormatTable(std::vector<std::vector<std::string>> rows) {
  std::vector<size_t> widths;
  // Text from elsewhere must neither break a row nor steer the terminal.
  for (auto& row : rows) {
    for (std::string& cell : row) cell = OneLine(cell);
  }
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) {
      line += row[i];
      line.append(widths[i] - row[i].size() + 2, ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

void FitColumn(std::vector<std::vector<std::string>>* rows, size_t column,
               size_t width) {
  constexpr size_t kLeast = 12;
  std::vector<size_t> widths;
  for (const auto& row : *rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], row[i].size());
    }
  }
  if (column >= widths.size()) return;
  size_t others = 0;
  for (size_t i = 0; i < widths.size(); ++i) {
    if (i != column) others += widths[i] + 2;
  }
  const size_t room = width > others + kLeast ? width - others : kLeast;
  for (auto& row : *rows) {
    if (column < row.size()) row[column] = FitLine(row[column], room);
  }
}

bool StdoutIsTerminal() { return IsTerminal(STDOUT_FILENO); }
bool StderrIsTerminal() { return IsTerminal(STDERR_FILENO); }

}  // namespace regatta::cli
