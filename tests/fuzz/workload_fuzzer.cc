// Texts of workloads, calls and expressions: a workload that parses prints as
// itself, is described, and has a space whose default is legal and whose loops
// pass the verifier.
#include <cstdint>

#include "base/check.h"
#include "compiler/lower/loop_ir.h"
#include "compiler/ops/op.h"
#include "compiler/space/space.h"
#include "server/query/workload_info.h"
#include "tests/fuzz/fuzz_text.h"

namespace regatta {
namespace {

// Rules look at extents, so a large number costs no time; a long expression
// does.
constexpr size_t kMaxBytesWithSpace = 400;

Target FuzzTarget() {
  const auto target = ParseTarget(
      "cpu,triple=x86_64-linux-gnu,mcpu=znver4,vector_bits=512,"
      "vector_registers=32");
  CHECK(target.ok()) << target.status();
  return *target;
}

void CheckSpace(const Workload& workload) {
  static const Target target = FuzzTarget();
  const auto space = Space::Create({.workload = workload, .target = target});
  if (!space.ok()) return;
  const Schedule schedule = space->Default();
  const auto refusal = space->Refusal(schedule);
  CHECK(!refusal.has_value()) << workload.text << ": " << *refusal;
  const auto parsed = space->Parse(space->Print(schedule));
  CHECK(parsed.ok() && *parsed == schedule) << workload.text;
  const absl::Status verified = loop::Verify(space->Emit(schedule));
  CHECK(verified.ok()) << workload.text << ": " << verified;
}

}  // namespace
}  // namespace regatta

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  const auto workload = ParseWorkload(fuzz::TextOf(data, size));
  if (!workload.ok()) return 0;
  const auto again = ParseWorkload(workload->text);
  CHECK(again.ok()) << workload->text << ": " << again.status();
  CHECK(again->text == workload->text) << again->text;
  CHECK(again->key == workload->key) << workload->text;
  DescribeWorkload(*workload);
  if (size <= kMaxBytesWithSpace) CheckSpace(*workload);
  return 0;
}
