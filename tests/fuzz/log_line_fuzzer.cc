// Lines of exported logs: an entry that is read prints as a line that is read
// as the same entry.
#include <cstdint>

#include "base/check.h"
#include "storage/log_line.h"
#include "tests/fuzz/fuzz_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  const auto entry = ParseLogLine(fuzz::TextOf(data, size));
  if (!entry.ok()) return 0;
  const std::string line = PrintLogLine(*entry);
  const auto again = ParseLogLine(line);
  CHECK(again.ok()) << line << ": " << again.status();
  CHECK(PrintLogLine(*again) == line) << line;
  return 0;
}
