#include "compiler/codegen/cuda/ptxas_log.h"

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace regatta::cuda {
namespace {

// The number before `words` in `line`; 0 when they are not there.
int64_t NumberBefore(std::string_view line, std::string_view words) {
  const size_t at = line.find(words);
  if (at == std::string_view::npos) return 0;
  size_t begin = at;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') {
    --begin;
  }
  int64_t number = 0;
  const std::string digits(line.substr(begin, at - begin));
  return absl::SimpleAtoi(digits, &number) ? number : 0;
}

constexpr std::string_view kProperties = "Function properties for ";

}  // namespace

std::vector<KernelUsage> ParsePtxasLog(std::string_view log) {
  std::vector<KernelUsage> kernels;
  const std::string text(log);
  for (const absl::string_view part : absl::StrSplit(text, '\n')) {
    const std::string_view line(part.data(), part.size());
    const size_t at = line.find(kProperties);
    if (at != std::string_view::npos) {
      kernels.emplace_back().entry =
          std::string(line.substr(at + kProperties.size()));
      continue;
    }
    if (kernels.empty()) continue;
    KernelUsage& kernel = kernels.back();
    if (line.find(" bytes stack frame") != std::string_view::npos) {
      kernel.stack_bytes = NumberBefore(line, " bytes stack frame");
      kernel.spill_bytes = NumberBefore(line, " bytes spill stores");
    }
    if (line.find("Used ") != std::string_view::npos) {
      kernel.registers = static_cast<int>(NumberBefore(line, " registers"));
      kernel.shared_bytes = NumberBefore(line, " bytes smem");
    }
  }
  return kernels;
}

}  // namespace regatta::cuda
