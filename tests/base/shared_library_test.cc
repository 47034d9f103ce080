// What becomes of libraries that are not there, are no libraries, or lack what
// is wanted of them.
#include "base/shared_library.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>

namespace regatta {
namespace {

TEST(SharedLibrary, OnlyAFileThatIsAbsentIsNotFound) {
  for (const char* name :
       {"libregatta-has-none.so.7", "/nowhere/libregatta-has-none.so.7"}) {
    const auto library = SharedLibrary::Open(name);
    EXPECT_EQ(library.status(),
              absl::NotFoundError(std::string("there is no ") + name));
  }
}

TEST(SharedLibrary, AFileThatCannotBeLoadedIsSaidWithTheReason) {
  const std::string path = ::testing::TempDir() + "regatta-no-library.so";
  std::ofstream(path) << "text";
  const auto library = SharedLibrary::Open(path);
  std::remove(path.c_str());
  EXPECT_EQ(library.status().code(), absl::StatusCode::kFailedPrecondition);
  const std::string said(library.status().message());
  EXPECT_EQ(said.find(path + " cannot be loaded: "), 0u) << said;
  EXPECT_GT(said.size(), path.size() + 30) << said;
}

TEST(SharedLibrary, EveryFunctionThatIsMissingIsNamed) {
  auto library = SharedLibrary::Open("libm.so.6");
  ASSERT_TRUE(library.ok()) << library.status();
  double (*cosine)(double) = nullptr;
  library->Resolve("cos", cosine);
  ASSERT_NE(cosine, nullptr);
  EXPECT_EQ(cosine(0), 1);
  EXPECT_TRUE(library->Complete().ok());
  void (*none)() = nullptr;
  library->Resolve("regattaFirst", none);
  library->Resolve("regattaSecond", none);
  EXPECT_EQ(none, nullptr);
  EXPECT_EQ(library->Complete(),
            absl::FailedPreconditionError(
                "libm.so.6 lacks regattaFirst regattaSecond"));
}

}  // namespace
}  // namespace regatta
