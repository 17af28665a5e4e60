module @jit_loop attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<3xf64>) -> (tensor<f64>, tensor<3xf64>) {
  %2 = "stablehlo.constant"() {value = dense<0.0> : tensor<f64>} : () -> tensor<f64>
  %3 = "stablehlo.broadcast_in_dim"(%2) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
  %4 = "stablehlo.constant"() {value = dense<0> : tensor<i32>} : () -> tensor<i32>
  %22, %23, %24 = "stablehlo.while"(%4, %2, %3) ({^bb0(%5: tensor<i32>, %6: tensor<f64>, %7: tensor<3xf64>):
    %8 = "stablehlo.constant"() {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %9 = "stablehlo.compare"(%5, %8) {comparison_direction = #stablehlo<comparison_direction LT>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
    "stablehlo.return"(%9) : (tensor<i1>) -> ()
  }, {^bb0(%10: tensor<i32>, %11: tensor<f64>, %12: tensor<3xf64>):
    %13 = "stablehlo.dynamic_slice"(%1, %10) {slice_sizes = array<i64: 1>} : (tensor<3xf64>, tensor<i32>) -> tensor<1xf64>
    %14 = "stablehlo.reshape"(%13) : (tensor<1xf64>) -> tensor<f64>
    %15 = "stablehlo.constant"() {value = dense<0.5> : tensor<f64>} : () -> tensor<f64>
    %16 = "stablehlo.multiply"(%11, %15) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %17 = "stablehlo.add"(%16, %14) : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %18 = "stablehlo.reshape"(%11) : (tensor<f64>) -> tensor<1xf64>
    %19 = "stablehlo.dynamic_update_slice"(%12, %18, %10) : (tensor<3xf64>, tensor<1xf64>, tensor<i32>) -> tensor<3xf64>
    %20 = "stablehlo.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %21 = "stablehlo.add"(%10, %20) : (tensor<i32>, tensor<i32>) -> tensor<i32>
    "stablehlo.return"(%21, %17, %19) : (tensor<i32>, tensor<f64>, tensor<3xf64>) -> ()
  }) : (tensor<i32>, tensor<f64>, tensor<3xf64>) -> (tensor<i32>, tensor<f64>, tensor<3xf64>)
  func.return %23, %24 : tensor<f64>, tensor<3xf64>
}
}
