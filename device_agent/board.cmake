# The board's side of a trial: spawner, sandbox, workers, measuring.
find_library(SECCOMP_LIBRARY seccomp REQUIRED)

# What every program of a board speaks: frames, memory files, CPU lists.
add_library(regatta_board_io STATIC
  spawner/cpu_list.cc spawner/frame_channel.cc spawner/memory_file.cc
  spawner/process_tree.cc)
target_link_libraries(regatta_board_io PUBLIC
  regatta_base protobuf::libprotobuf absl::status absl::statusor absl::strings)

# The part of the sandbox that a run worker applies to itself, and the rest.
add_library(regatta_sandbox STATIC
  sandbox/cgroup.cc sandbox/landlock.cc sandbox/sandbox.cc
  sandbox/seccomp_filter.cc)
target_link_libraries(regatta_sandbox PUBLIC
  regatta_board_io PRIVATE ${SECCOMP_LIBRARY})

add_executable(regatta-spawner
  spawner/main.cc spawner/spawner.cc spawner/worker.cc)
target_link_libraries(regatta-spawner PRIVATE
  regatta_proto regatta_sandbox CLI11::CLI11)

# The agent's side; no compiler in it.
add_library(regatta_measure STATIC spawner/spawner_client.cc)
target_link_libraries(regatta_measure PUBLIC
  regatta_proto regatta_board_io regatta_base)
