// Runs a fuzzer's inputs where there is no libFuzzer: the files of its corpus,
// and seeded mutations of each.
//   NAME_replay FOLDER [MUTATIONS]
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/random.h"
#include "tests/support/scale.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                                                size_t size,
                                                                size_t max_size,
                                                                unsigned seed);

namespace regatta {
namespace {

constexpr size_t kMaxBytes = 4096;

void Run(const std::string& input) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()),
                         input.size());
}

std::string Mutated(std::string input, Random& random) {
  if (LLVMFuzzerCustomMutator != nullptr) {
    const size_t size = input.size();
    const size_t room = std::max(kMaxBytes, size);
    input.resize(room);
    input.resize(
        LLVMFuzzerCustomMutator(reinterpret_cast<uint8_t*>(input.data()), size,
                                room, static_cast<unsigned>(random.Next())));
    return input;
  }
  for (uint64_t n = 1 + random.Below(4); n > 0; --n) {
    const size_t at = random.Below(input.size() + 1);
    const auto byte = static_cast<char>(random.Next());
    switch (random.Below(4)) {
      case 0:
        input.insert(at, 1, byte);
        break;
      case 1:
        input.erase(at, 1 + random.Below(4));
        break;
      case 2:
        input.insert(at, input.substr(random.Below(input.size() + 1), 16));
        break;
      default:
        if (at < input.size()) input[at] = byte;
    }
  }
  return input;
}

int Replay(const std::string& folder, int mutations) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::fprintf(stderr, "%s: no inputs\n", folder.c_str());
    return 1;
  }
  Random random(1);
  for (const auto& file : files) {
    std::ifstream stream(file, std::ios::binary);
    const std::string input{std::istreambuf_iterator<char>(stream), {}};
    Run(input);
    for (int i = 0; i < mutations; ++i) Run(Mutated(input, random));
  }
  std::printf("%zu inputs, %d mutations of each\n", files.size(), mutations);
  return 0;
}

}  // namespace
}  // namespace regatta

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: %s FOLDER [MUTATIONS]\n", argv[0]);
    return 2;
  }
  LLVMFuzzerInitialize(&argc, &argv);
  const int mutations = argc > 2 ? std::atoi(argv[2]) : regatta::Scaled(100);
  return regatta::Replay(argv[1], mutations);
}
