#include "compiler/module/module.h"

#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/random.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/compiler/sample_module.h"
#include "tests/compiler/status_text.h"

namespace regatta {
namespace {

using ::testing::HasSubstr;

void ExpectSame(const Module& a, const Module& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.workload, b.workload);
  EXPECT_EQ(a.workload_key, b.workload_key);
  EXPECT_EQ(a.target, b.target);
  EXPECT_EQ(a.space, b.space);
  EXPECT_EQ(a.space_version, b.space_version);
  EXPECT_EQ(a.schedule, b.schedule);
  EXPECT_EQ(a.compiler_version, b.compiler_version);
  EXPECT_EQ(a.threads, b.threads);
  EXPECT_EQ(a.host_sequence, b.host_sequence);
  EXPECT_EQ(a.workspace_bytes, b.workspace_bytes);
  EXPECT_EQ(a.loadable, b.loadable);
  EXPECT_EQ(a.relocatable, b.relocatable);
  ASSERT_EQ(a.buffers.size(), b.buffers.size());
  for (size_t i = 0; i < a.buffers.size(); ++i) {
    EXPECT_EQ(a.buffers[i].name, b.buffers[i].name);
    EXPECT_EQ(a.buffers[i].role, b.buffers[i].role);
    EXPECT_EQ(a.buffers[i].dtype, b.buffers[i].dtype);
    EXPECT_EQ(a.buffers[i].shape, b.buffers[i].shape);
    EXPECT_EQ(a.buffers[i].bytes, b.buffers[i].bytes);
    EXPECT_EQ(a.buffers[i].alignment, b.buffers[i].alignment);
    EXPECT_EQ(a.buffers[i].space, b.buffers[i].space);
    EXPECT_EQ(a.buffers[i].workspace_offset, b.buffers[i].workspace_offset);
    EXPECT_EQ(a.buffers[i].packing_kernel, b.buffers[i].packing_kernel);
  }
  ASSERT_EQ(a.kernels.size(), b.kernels.size());
  for (size_t i = 0; i < a.kernels.size(); ++i) {
    EXPECT_EQ(a.kernels[i].entry, b.kernels[i].entry);
    EXPECT_EQ(a.kernels[i].arguments, b.kernels[i].arguments);
    EXPECT_EQ(a.kernels[i].grid, b.kernels[i].grid);
    EXPECT_EQ(a.kernels[i].group, b.kernels[i].group);
    EXPECT_EQ(a.kernels[i].shared_bytes, b.kernels[i].shared_bytes);
  }
}

// The sample's bytes with one piece of its description replaced.
std::string WithDescription(const std::string& from, const std::string& to) {
  std::string bytes = SerializeModule(SampleModule());
  const size_t at = bytes.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  bytes.replace(at, from.size(), to);
  const size_t old_size = static_cast<unsigned char>(bytes[8]) +
                          256 * static_cast<unsigned char>(bytes[9]);
  const size_t size = old_size + to.size() - from.size();
  bytes[8] = static_cast<char>(size % 256);
  bytes[9] = static_cast<char>(size / 256);
  return bytes;
}

void ExpectRefused(const std::string& bytes, const std::string& message) {
  const auto module = DeserializeModule(bytes);
  ASSERT_FALSE(module.ok());
  EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(StatusText(module), HasSubstr(message));
}

TEST(ModuleTest, BytesComeBackAsAnEqualModule) {
  const Module module = SampleModule();
  const auto again = DeserializeModule(SerializeModule(module));
  ASSERT_STATUS_OK(again);
  ExpectSame(module, *again);
  EXPECT_EQ(SerializeModule(*again), SerializeModule(module));
}

TEST(ModuleTest, AModuleOfADeviceComesBackEqual) {
  Module module = SampleModule();
  for (ModuleBuffer& buffer : module.buffers) {
    buffer.space = MemorySpace::kDevice;
  }
  // An allocation of its own: no place in a block.
  module.workspace_bytes = 0;
  module.buffers[3].workspace_offset = 0;
  module.kernels[0].grid = {16, 4, 2};
  module.kernels[0].group = {32, 8, 1};
  module.kernels[0].shared_bytes = 49152;
  const auto again = DeserializeModule(SerializeModule(module));
  ASSERT_STATUS_OK(again);
  ExpectSame(module, *again);
}

TEST(ModuleTest, EveryTruncationIsRefused) {
  const std::string bytes = SerializeModule(SampleModule());
  for (size_t size = 0; size < bytes.size(); ++size) {
    ExpectRefused(bytes.substr(0, size), "module: at byte ");
  }
}

TEST(ModuleTest, BytesAfterTheEndAreRefused) {
  ExpectRefused(SerializeModule(SampleModule()) + "x", "more bytes follow");
}

TEST(ModuleTest, EveryChangedByteIsRefusedOrReadButNeverKills) {
  const std::string bytes = SerializeModule(SampleModule());
  Random random(13);
  for (size_t at = 0; at < bytes.size(); ++at) {
    std::string changed = bytes;
    changed[at] = static_cast<char>(random.Below(256));
    const auto module = DeserializeModule(changed);
    if (!module.ok()) {
      EXPECT_EQ(module.status().code(), absl::StatusCode::kInvalidArgument);
    }
  }
}

TEST(ModuleTest, WrongHeadersAreNamed) {
  std::string bytes = SerializeModule(SampleModule());
  ExpectRefused("", "no module");
  ExpectRefused(
      "\x7f"
      "ELF",
      "no module");
  ExpectRefused("RGTM", "at byte 4: the header is cut off");
  bytes[4] = 9;
  ExpectRefused(bytes, "version 9; this program reads version 3");
  // Sizes whose sum would wrap around.
  bytes[4] = 3;
  for (int i = 16; i < 32; ++i) bytes[i] = '\xff';
  ExpectRefused(bytes, "cut off");
}

TEST(ModuleTest, WrongFieldsAreNamed) {
  const struct {
    std::string from, to, message;
  } cases[] = {
      {"\"threads\":2", "\"threads\":0", "'threads' must be"},
      {"\"threads\":2", "\"threads\":2.5", "'threads' must be"},
      {"\"threads\":2", "\"threads\":99999999999999999999", "'threads'"},
      {"\"threads\":2", "\"thread\":2", "'threads' is missing"},
      {"\"threads\":2", "\"threads\":\"2\"", "'threads' must be"},
      {"\"name\":\"my_kernel\"", "\"name\":\"my kernel\"", "C identifier"},
      {"\"name\":\"my_kernel\"", "\"name\":7", "'name' must be a text"},
      {"\"role\":\"output\"", "\"role\":\"both\"", "buffers[2].role"},
      {"\"role\":\"input\"", "\"role\":\"workspace\"",
       "'buffers[1].role' must be in the order"},
      {"\"dtype\":\"i8\"", "\"dtype\":\"i9\"", "buffers[1].dtype"},
      {"\"shape\":[3,4]", "\"shape\":[3,5]", "buffers[0].bytes"},
      {"\"shape\":[3,4]", "\"shape\":[3,-4]", "buffers[0].shape"},
      {"\"shape\":[3,4]", "\"shape\":[999999999999,999999999999]",
       "buffers[0].bytes"},
      {"\"shape\":[3,4]", "\"shape\":{}", "must be a list"},
      {"\"alignment\":64", "\"alignment\":48", "power of two"},
      {"\"workspace_offset\":128", "\"workspace_offset\":4096",
       "leaves the workspace"},
      {"\"arguments\":[0,1,2,3]", "\"arguments\":[0,1,2,4]",
       "kernels[0].arguments"},
      {"\"host_sequence\":[0]", "\"host_sequence\":[1]", "'host_sequence'"},
      {"\"shared_bytes\":0", "\"shared_bytes\":-1", "kernels[0].shared_bytes"},
      {"\"kernels\":[{", "\"kernels\":[7,{", "kernels[0]"},
      {"{\"buffers\"", "[\"buffers\"", "is no JSON"},
  };
  for (const auto& test : cases) {
    ExpectRefused(WithDescription(test.from, test.to), test.message);
  }
}

TEST(ModuleTest, ADeeplyNestedDescriptionIsRefused) {
  ExpectRefused(
      WithDescription("\"threads\":2",
                      absl::StrCat("\"threads\":", std::string(30000, '['))),
      "is no JSON");
}

TEST(ModuleTest, HowADeviceLaunchesItsKernelsIsPartOfItsIdentity) {
  Module module;
  module.loadable = "source";
  module.kernels = {ModuleKernel{"k", {0, 1}, {4, 2}, {16, 1}}};
  const std::string unlaunched = module.BinaryHash();
  module.host_sequence = {0};
  std::set<std::string> hashes = {unlaunched, module.BinaryHash()};
  Module other = module;
  other.kernels[0].grid = {2, 4};
  hashes.insert(other.BinaryHash());
  other = module;
  other.kernels[0].group = {8, 2};
  hashes.insert(other.BinaryHash());
  other = module;
  other.kernels[0].arguments = {1, 0};
  hashes.insert(other.BinaryHash());
  other = module;
  other.kernels[0].shared_bytes = 64;
  hashes.insert(other.BinaryHash());
  other = module;
  other.host_sequence = {0, 0};
  hashes.insert(other.BinaryHash());
  EXPECT_EQ(hashes.size(), 7u);
}

TEST(ModuleTest, BinaryHashIsOfTheLoadableCodeOnly) {
  Module module = SampleModule();
  module.loadable = "abc";
  // SHA-256 of "abc", FIPS 180-2 appendix B.1.
  EXPECT_EQ(module.BinaryHash(),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  module.schedule = "another";
  module.relocatable = "another";
  EXPECT_EQ(module.BinaryHash().substr(0, 8), "ba7816bf");
}

TEST(ModuleTest, BuffersAreFoundByRole) {
  const Module module = SampleModule();
  EXPECT_EQ(module.BuffersWithRole(BufferRole::kInput).size(), 2u);
  EXPECT_EQ(module.BuffersWithRole(BufferRole::kOutput).size(), 1u);
  EXPECT_EQ(module.BuffersWithRole(BufferRole::kWorkspace).size(), 1u);
  EXPECT_TRUE(module.BuffersWithRole(BufferRole::kConstant).empty());
}

}  // namespace
}  // namespace regatta
