// A damaged snapshot gives an error, or answers that are somebody's; it never
// does harm.
#include <cstddef>
#include <cstring>

#include "base/digest.h"
#include "base/random.h"
#include "tests/server/query/snapshot_fixture.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;
using SnapshotDamageTest = SnapshotTest;

// With the digest that the bytes have now.
std::string Resealed(std::string bytes) {
  constexpr size_t kAt = offsetof(snapshot::Header, digest);
  std::memset(bytes.data() + kAt, 0, 32);
  const std::string digest = Sha256({bytes});
  std::memcpy(bytes.data() + kAt, digest.data(), digest.size());
  return bytes;
}

void ExpectRefused(const std::string& bytes, const std::string& what) {
  const auto snapshot = Snapshot::FromBytes(bytes, "FILE");
  ASSERT_FALSE(snapshot.ok()) << what;
  EXPECT_THAT(std::string(snapshot.status().message()), HasSubstr("FILE"))
      << what;
}

TEST_F(SnapshotDamageTest, EveryFlippedByteIsNoticed) {
  Random random(1);
  std::vector<size_t> places;
  for (size_t i = 0; i < sizeof(snapshot::Header); ++i) places.push_back(i);
  const int more = testing::ScaledSeeds(300);
  for (int i = 0; i < more; ++i) places.push_back(random.Below(bytes_.size()));
  std::cout << places.size() << " flipped bytes\n";
  for (const size_t place : places) {
    std::string bytes = bytes_;
    bytes[place] ^= static_cast<char>(1 + random.Below(255));
    ExpectRefused(bytes, absl::StrCat("byte ", place));
  }
}

TEST_F(SnapshotDamageTest, EveryCutIsNoticed) {
  Random random(2);
  for (size_t size = 0; size < bytes_.size();
       size += 1 + random.Below(bytes_.size() / 60)) {
    ExpectRefused(bytes_.substr(0, size), absl::StrCat("cut to ", size));
  }
  ExpectRefused(bytes_ + "x", "one byte more");
}

// What a hostile writer could make: the digest fits. Whatever opens must answer
// without harm (run with sanitizers, this is the test of the reader's bounds).
TEST_F(SnapshotDamageTest, DamageThatTheDigestDoesNotShowDoesNoHarm) {
  Random random(3);
  const int tries = testing::ScaledSeeds(400);
  int opened = 0;
  for (int i = 0; i < tries; ++i) {
    std::string bytes = bytes_;
    const int flips = 1 + static_cast<int>(random.Below(3));
    for (int flip = 0; flip < flips; ++flip) {
      bytes[random.Below(bytes.size())] ^=
          static_cast<char>(1 + random.Below(255));
    }
    const std::string path = Path("damaged.rgs");
    testing::WriteFile(path, Resealed(bytes));
    auto file = BestFile::OpenSnapshot(path, FileOptions());
    if (!file.ok()) continue;
    ++opened;
    AskFile(**file);
  }
  std::cout << tries << " damaged files, " << opened << " opened\n";
  EXPECT_GT(opened, 0);
  EXPECT_LT(opened, tries);
}

TEST_F(SnapshotDamageTest, SaysWhatIsWrong) {
  const auto message = [](const std::string& bytes) {
    const auto snapshot = Snapshot::FromBytes(bytes, "FILE");
    return absl::StrCat(static_cast<int>(snapshot.status().code()), " ",
                        std::string(snapshot.status().message()));
  };
  const auto with = [&](size_t at, auto value) {
    std::string bytes = bytes_;
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    return Resealed(bytes);
  };
  EXPECT_THAT(message(""), HasSubstr("not a snapshot"));
  EXPECT_THAT(message(std::string(5000, 'x')), HasSubstr("not a snapshot"));
  EXPECT_THAT(message(with(offsetof(snapshot::Header, version), uint32_t{3})),
              HasSubstr("9 FILE: the snapshot has version 3, this program "
                        "reads 2"));
  EXPECT_THAT(message(bytes_.substr(0, bytes_.size() - 1)),
              HasSubstr("cut off"));
  EXPECT_THAT(message(bytes_.substr(0, 100)), HasSubstr("cut off"));
  for (const size_t table :
       {offsetof(snapshot::Header, workloads),
        offsetof(snapshot::Header, cells), offsetof(snapshot::Header, texts)}) {
    for (const uint64_t count : {uint64_t{1} << 40, ~uint64_t{0}}) {
      EXPECT_THAT(message(with(table + 8, count)),
                  HasSubstr("is not within the file"));
    }
    EXPECT_THAT(message(with(table, ~uint64_t{7})),
                HasSubstr("is not within the file"));
  }
  std::string flipped = bytes_;
  flipped.back() ^= 1;
  EXPECT_THAT(message(flipped), HasSubstr("SHA-256"));
  const auto missing = Snapshot::Open(Path("none.rgs"));
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_THAT(std::string(missing.status().message()), HasSubstr("none.rgs"));
  EXPECT_FALSE(Snapshot::Open(dir_.path()).ok());
}

// What a compiler rebuilt is exact for readers with that compiler, and for
// nobody else.

}  // namespace
}  // namespace regatta
