module @jit_loop_gradient attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<3xf64>) -> (tensor<3xf64>) {
  %2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
  %4 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %25, %26, %27 = "stablehlo.while"(%4, %2, %3) ({^bb0(%5: tensor<i32>, %6: tensor<f64>, %7: tensor<3xf64>):
    %8 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %9 = "stablehlo.compare"(%5, %8) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%9) : (tensor<i1>) -> ()
  }, {^bb0(%10: tensor<i32>, %11: tensor<f64>, %12: tensor<3xf64>):
    %13 = "stablehlo.dynamic_slice"(%1, %10) {slice_sizes = array<i64: 1>} : (tensor<3xf64>, tensor<i32>) -> tensor<1xf64>
    %14 = "stablehlo.reshape"(%13) : (tensor<1xf64>) -> tensor<f64>
    %15 = "stablehlo.add"(%11, %14) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %16 = "stablehlo.tanh"(%15) : (tensor<f64>) -> tensor<f64>
    %17 = "stablehlo.constant"() {value = dense<1.0> : tensor<f64>} : () -> tensor<f64>
    %18 = "stablehlo.subtract"(%17, %16) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %19 = "stablehlo.add"(%17, %16) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %20 = "stablehlo.multiply"(%18, %19) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %21 = "stablehlo.reshape"(%20) : (tensor<f64>) -> tensor<1xf64>
    %22 = "stablehlo.dynamic_update_slice"(%12, %21, %10) : (tensor<3xf64>, tensor<1xf64>, tensor<i32>) -> tensor<3xf64>
    %23 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %24 = "stablehlo.add"(%10, %23) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%24, %16, %22) : (tensor<i32>, tensor<f64>, tensor<3xf64>) -> ()
  }) : (tensor<i32>, tensor<f64>, tensor<3xf64>) -> (tensor<i32>, tensor<f64>, tensor<3xf64>)
  %28 = "stablehlo.constant"() {value = dense<1.0> : tensor<f64>} : () -> tensor<f64>
  %29 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
  %47, %48, %49 = "stablehlo.while"(%4, %28, %29) ({^bb0(%30: tensor<i32>, %31: tensor<f64>, %32: tensor<3xf64>):
    %33 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %34 = "stablehlo.compare"(%30, %33) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%34) : (tensor<i1>) -> ()
  }, {^bb0(%35: tensor<i32>, %36: tensor<f64>, %37: tensor<3xf64>):
    %38 = "stablehlo.constant"() {value = dense<2> : tensor<i32>} : () -> tensor<i32>
    %39 = "stablehlo.subtract"(%38, %35) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    %40 = "stablehlo.dynamic_slice"(%27, %39) {slice_sizes = array<i64: 1>} : (tensor<3xf64>, tensor<i32>) -> tensor<1xf64>
    %41 = "stablehlo.reshape"(%40) : (tensor<1xf64>) -> tensor<f64>
    %42 = "stablehlo.multiply"(%36, %41) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %43 = "stablehlo.reshape"(%42) : (tensor<f64>) -> tensor<1xf64>
    %44 = "stablehlo.dynamic_update_slice"(%37, %43, %39) : (tensor<3xf64>, tensor<1xf64>, tensor<i32>) -> tensor<3xf64>
    %45 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %46 = "stablehlo.add"(%35, %45) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%46, %42, %44) : (tensor<i32>, tensor<f64>, tensor<3xf64>) -> ()
  }) : (tensor<i32>, tensor<f64>, tensor<3xf64>) -> (tensor<i32>, tensor<f64>, tensor<3xf64>)
  func.return %49 : tensor<3xf64>
}
}
