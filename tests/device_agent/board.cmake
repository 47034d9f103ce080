# Tests of the board's side: spawner, sandbox, workers, measuring, sensors.
add_executable(misbehaving_worker misbehaving_worker.cc)

regatta_test(board_test
  spawner_test.cc
  LIBS regatta_measure regatta_base)
target_compile_definitions(board_test PRIVATE
  REGATTA_BIN_DIR="${CMAKE_RUNTIME_OUTPUT_DIRECTORY}")
add_dependencies(board_test misbehaving_worker regatta-spawner)
