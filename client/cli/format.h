// Numbers and tables as people read them. Every number has its unit.
#ifndef REGATTA_CLIENT_CLI_FORMAT_H_
#define REGATTA_CLIENT_CLI_FORMAT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// "812 ns", "1.234 ms", "2.5 s"; "unknown" for 0 and below.
std::string FormatNs(int64_t ns);
// A span for people: "2 min 3 s", "850 ms"; "unknown" below 0.
std::string FormatSpan(int64_t ms);
// "103.2 GFLOP/s", "8.41 GB/s".
std::string FormatFlopRate(double flops_per_s);
std::string FormatByteRate(double bytes_per_s);
std::string FormatBytes(int64_t bytes);
// "1.84x (95 % interval 1.79x to 1.90x)"; "unknown" for 0.
std::string FormatSpeedup(double speedup, double low, double high);

// How fast one call of `task`'s workload in `time_ns` is: in GFLOP/s when the
// machine's peak bounds it, in GB/s when its bandwidth does, with the share of
// what was measured where known: "103.2 GFLOP/s (87 % of the measured peak)".
std::string FormatAchieved(const v1::TaskStatus& task, int64_t time_ns);

// Columns padded to their widest cell, two blanks between; the first row is the
// heading. Control characters become blanks.
std::string FormatTable(std::vector<std::vector<std::string>> rows);

// Cuts the cells of one column so that the table fits in `width` columns, as
// far as that is possible with 12 left for it.
void FitColumn(std::vector<std::vector<std::string>>* rows, size_t column,
               size_t width);

// True when standard output (error) is a terminal, TERM is not "dumb" and
// NO_COLOR is not set.
bool StdoutIsTerminal();
bool StderrIsTerminal();

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_FORMAT_H_
