#include "tests/compiler/module_support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>

#include "base/random.h"
#include "compiler/module/half.h"
#include "compiler/module/tensor_bytes.h"
#include "tests/compiler/codegen_support.h"

namespace regatta {

std::vector<TensorValues> SeededInputs(const Workload& workload,
                                       uint64_t seed) {
  Random random(seed);
  std::vector<TensorValues> inputs;
  for (const int id : workload.TensorsWithRole(TensorRole::kInput)) {
    const TensorDecl& tensor = workload.tensors[id];
    TensorValues values(tensor.Elements());
    for (double& value : values) {
      value = IsFloat(tensor.dtype)
                  ? RoundToDType(random.Unit() * 2 - 1, tensor.dtype)
                  : static_cast<double>(random.Below(15)) - 7;
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

std::vector<TensorValues> FullRangeInputs(const Workload& workload,
                                          uint64_t seed) {
  Random random(seed);
  std::vector<TensorValues> inputs;
  for (const int id : workload.TensorsWithRole(TensorRole::kInput)) {
    const TensorDecl& tensor = workload.tensors[id];
    TensorValues values(tensor.Elements());
    for (double& value : values) {
      value = tensor.dtype == DType::kI8
                  ? static_cast<double>(random.Below(256)) - 128
              : IsFloat(tensor.dtype)
                  ? RoundToDType(random.Unit() * 2 - 1, tensor.dtype)
                  : static_cast<double>(random.Below(15)) - 7;
    }
    inputs.push_back(std::move(values));
  }
  return inputs;
}

std::vector<TensorValues> RunModule(const Module& module,
                                    const Workload& workload,
                                    const std::vector<TensorValues>& inputs) {
  std::vector<std::unique_ptr<FencedMemory>> memory;
  std::vector<void*> pointers;
  const auto add = [&](const TensorDecl& tensor) {
    memory.push_back(std::make_unique<FencedMemory>(
        tensor.Elements() * DTypeBytes(tensor.dtype),
        DTypeBytes(tensor.dtype)));
    pointers.push_back(memory.back()->data());
  };
  const std::vector<int> input_ids =
      workload.TensorsWithRole(TensorRole::kInput);
  const std::vector<int> output_ids =
      workload.TensorsWithRole(TensorRole::kOutput);
  for (size_t i = 0; i < input_ids.size(); ++i) {
    add(workload.tensors[input_ids[i]]);
    WriteValues(inputs[i], workload.tensors[input_ids[i]].dtype,
                pointers.back());
  }
  for (const int id : output_ids) {
    const TensorDecl& tensor = workload.tensors[id];
    add(tensor);
    std::memset(pointers.back(), 0xff,
                tensor.Elements() * DTypeBytes(tensor.dtype));
  }
  const LoadedModule loaded(module);
  EXPECT_EQ(loaded.Call(pointers), 0);
  std::vector<TensorValues> outputs;
  for (size_t i = 0; i < output_ids.size(); ++i) {
    const TensorDecl& tensor = workload.tensors[output_ids[i]];
    outputs.push_back(ReadValues(pointers[input_ids.size() + i],
                                 tensor.Elements(), tensor.dtype));
  }
  return outputs;
}

double ModuleTolerance(const Workload& workload, DType type) {
  double length = 1;
  for (const Stage& stage : workload.stages) {
    double terms = 1;
    for (const int id : stage.reduce_indices) {
      terms *= static_cast<double>(workload.indices[id].extent);
    }
    length = std::max(length, terms);
  }
  const double unit = type == DType::kF16    ? 0x1p-11
                      : type == DType::kBF16 ? 0x1p-8
                      : IsFloat(type)        ? 0x1p-24
                                             : 0;
  return unit * (4 + length);
}

void ExpectNear(const Workload& workload, const std::vector<TensorValues>& got,
                const std::vector<TensorValues>& expected,
                const std::string& what) {
  const std::vector<int> ids = workload.TensorsWithRole(TensorRole::kOutput);
  for (size_t t = 0; t < ids.size(); ++t) {
    const double tolerance =
        ModuleTolerance(workload, workload.tensors[ids[t]].dtype);
    for (size_t i = 0; i < expected[t].size(); ++i) {
      const double allowed =
          tolerance * std::max(1.0, std::fabs(expected[t][i]));
      if (!(std::fabs(got[t][i] - expected[t][i]) <= allowed)) {
        ADD_FAILURE() << workload.text << " " << what << ": element " << i
                      << " is " << got[t][i] << ", not " << expected[t][i];
        return;
      }
    }
  }
}

}  // namespace regatta
