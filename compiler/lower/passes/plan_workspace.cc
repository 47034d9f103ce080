#include "compiler/lower/passes/plan_workspace.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace regatta {
namespace {

// Kernels [first, last] touch the buffer.
struct Life {
  int first = -1;
  int last = -1;
};

void Touch(std::vector<Life>& lives, int buffer, int kernel) {
  Life& life = lives[buffer];
  if (life.first < 0) life.first = kernel;
  life.last = kernel;
}

int64_t RoundUp(int64_t bytes) {
  return (bytes + kWorkspaceAlignment - 1) / kWorkspaceAlignment *
         kWorkspaceAlignment;
}

struct Placed {
  Life life;
  int64_t begin = 0;
  int64_t end = 0;
};

// The lowest gap of `bytes` among what is alive at the same time.
int64_t LowestGap(const std::vector<Placed>& placed, Life life, int64_t bytes) {
  std::vector<Placed> alive;
  for (const Placed& p : placed) {
    if (p.life.first <= life.last && life.first <= p.life.last) {
      alive.push_back(p);
    }
  }
  std::sort(alive.begin(), alive.end(),
            [](const Placed& a, const Placed& b) { return a.begin < b.begin; });
  int64_t offset = 0;
  for (const Placed& p : alive) {
    if (offset + bytes <= p.begin) break;
    offset = std::max(offset, p.end);
  }
  return offset;
}

}  // namespace

void PlanWorkspace(LoweredProgram& lowered) {
  const loop::Program& program = lowered.program;
  const size_t count = program.buffers.size();
  lowered.workspace_offset.assign(count, -1);
  lowered.workspace_stride.assign(count, 0);
  lowered.workspace_bytes = 0;

  std::vector<Life> lives(count);
  for (size_t k = 0; k < program.kernels.size(); ++k) {
    loop::VisitBuffers(*program.kernels[k].body, [&](int buffer, bool) {
      Touch(lives, buffer, static_cast<int>(k));
    });
  }
  std::vector<int> order;
  for (size_t i = 0; i < count; ++i) {
    const loop::Buffer& buffer = program.buffers[i];
    if (buffer.scope != loop::Scope::kWorkspace || lives[i].first < 0) continue;
    lowered.workspace_stride[i] =
        RoundUp(buffer.elements * DTypeBytes(buffer.dtype));
    order.push_back(static_cast<int>(i));
  }
  const auto bytes = [&](int i) {
    return lowered.workspace_stride[i] *
           (program.buffers[i].per_thread ? program.threads : 1);
  };
  // Large ones first leave the fewest gaps.
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(-bytes(a), a) < std::pair(-bytes(b), b);
  });
  std::vector<Placed> placed;
  for (const int i : order) {
    const int64_t offset = LowestGap(placed, lives[i], bytes(i));
    lowered.workspace_offset[i] = offset;
    placed.push_back({lives[i], offset, offset + bytes(i)});
    lowered.workspace_bytes =
        std::max(lowered.workspace_bytes, offset + bytes(i));
  }
}

}  // namespace regatta
