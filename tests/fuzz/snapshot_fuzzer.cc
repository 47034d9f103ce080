// Snapshot files. The digest is put right first: with a wrong one nothing else
// is looked at.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "base/check.h"
#include "base/digest.h"
#include "server/query/snapshot.h"
#include "tests/fuzz/fuzz_text.h"

namespace regatta {
namespace {

std::string WithDigest(std::string bytes) {
  constexpr size_t kAt = offsetof(snapshot::Header, digest);
  constexpr size_t kBytes = sizeof(snapshot::Header::digest);
  if (bytes.size() < sizeof(snapshot::Header)) return bytes;
  std::memset(bytes.data() + kAt, 0, kBytes);
  const std::string digest = Sha256({bytes});
  CHECK(digest.size() == kBytes);
  std::memcpy(bytes.data() + kAt, digest.data(), kBytes);
  return bytes;
}

void Ask(const Snapshot& snapshot) {
  for (const bool imported : {false, true}) {
    const auto classes = snapshot.DeviceClasses(imported);
    CHECK(classes.ok());
    for (const std::string& name : *classes) {
      snapshot.FindClass(name);
      snapshot.FindFacts(name);
    }
  }
  CHECK(snapshot.FactsOfClasses().ok());
  snapshot.FindText("matmul(m=8,n=8,k=8)");
  CHECK(snapshot.BestOfWorkload("").ok());
}

}  // namespace
}  // namespace regatta

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace regatta;
  const auto snapshot = Snapshot::FromBytes(
      WithDigest(std::string(fuzz::TextOf(data, size))), "snapshot");
  if (snapshot.ok()) Ask(**snapshot);
  return 0;
}
