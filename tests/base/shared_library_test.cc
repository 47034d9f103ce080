// What becomes of libraries that are not there, are no libraries, or lack what
// is wanted of them.
#include "base/shared_library.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <link.h>

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/elf_file.h"

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

// The first `bytes` of the system's libm, as a file of its own.
std::string PartOfLibrary(size_t bytes) {
  std::ifstream whole(FindSharedLibrary("libm.so.6"), std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(whole), {}};
  EXPECT_GT(text.size(), bytes);
  const std::string path = ::testing::TempDir() + "regatta-part.so";
  std::ofstream(path, std::ios::binary) << text.substr(0, bytes);
  return path;
}

// The loader would be killed by it (SIGBUS), and this process with it.
TEST(SharedLibrary, OneThatIsCutOffIsDamagedWhereverItIsCut) {
  for (const size_t bytes : {size_t{80}, size_t{1000}, size_t{5000},
                             size_t{100'000}, size_t{300'000}}) {
    const std::string path = PartOfLibrary(bytes);
    const auto library = SharedLibrary::Open(path);
    EXPECT_EQ(library.status().code(), absl::StatusCode::kFailedPrecondition);
    const std::string said(library.status().message());
    EXPECT_EQ(
        said.find(absl::StrCat(path, " is damaged: it has ", bytes, " bytes")),
        0u)
        << said;
    EXPECT_EQ(CheckSharedLibrary(path), library.status());
    std::remove(path.c_str());
  }
}

TEST(SharedLibrary, AWholeOneIsFoundAsTheLoaderFindsIt) {
  const std::string path = FindSharedLibrary("libm.so.6");
  EXPECT_EQ(CheckSharedLibrary(path), absl::OkStatus()) << path;
  const auto library = SharedLibrary::Open("libm.so.6");
  ASSERT_TRUE(library.ok()) << library.status();
  EXPECT_EQ(library->Folder(), path.substr(0, path.rfind('/') + 1));
  EXPECT_EQ(FindSharedLibrary("libregatta-has-none.so.7"), "");
}

TEST(SharedLibrary, WhatIsNoLibraryForThisProcessorIsSaid) {
  const std::string path = ::testing::TempDir() + "regatta-other.so";
  std::string other(sizeof(ElfW(Ehdr)), '\0');
  ElfW(Ehdr) header = {};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_type = ET_DYN;
  header.e_machine = EM_SPARCV9;
  header.e_phentsize = sizeof(ElfW(Phdr));
  std::memcpy(other.data(), &header, sizeof(header));
  for (const std::string& text : {std::string(), std::string("text"), other}) {
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_EQ(CheckSharedLibrary(path),
              absl::FailedPreconditionError(
                  path + " is no shared library for this machine's processor"));
  }
  std::remove(path.c_str());
  EXPECT_EQ(CheckSharedLibrary(path).code(),
            absl::StatusCode::kFailedPrecondition);
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
