// Texts of targets and of lists of processors: what parses prints as itself.
#include <cstdint>

#include "base/check.h"
#include "compiler/target/target.h"
#include "device_agent/spawner/cpu_list.h"
#include "tests/fuzz/fuzz_text.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  const std::string_view text = fuzz::TextOf(data, size);
  if (const auto target = ParseTarget(text); target.ok()) {
    const auto again = ParseTarget(target->ToString());
    CHECK(again.ok() && *again == *target) << target->ToString();
    MultipliesByLane(*target);
    for (const auto& product : target->products) ParseProductForm(product);
  }
  ParseProductForm(text);
  if (const auto cpus = ParseCpuList(text); cpus.ok()) {
    const auto again = ParseCpuList(FormatCpuList(*cpus));
    CHECK(again.ok() && *again == *cpus) << FormatCpuList(*cpus);
  }
  return 0;
}
